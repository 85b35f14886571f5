import ByteKernels

/// The client's side of a connection to a message bus: lets itself in, then separates messages.
///
/// The bus knows the user from the socket, so that the client need not name itself.
/// - Source: D-Bus specification, "Authentication Protocol".
package struct BusConversation: Sendable {
    package enum Event: Sendable {
        /// To be sent to the bus.
        case send([UInt8])
        /// The bus has let the client in: calls may be sent.
        case opened
        case message(BusMessage)
    }

    private enum Phase {
        /// AUTH is sent; the bus asks for the name that the client wants to have.
        case authenticating
        /// An empty name is sent.
        case awaitingPermission
        case open
    }

    /// Sent first: the byte with which the socket's credentials travel, and the method.
    package static let greeting = Array("\0AUTH EXTERNAL\r\n".utf8)
    /// Longest line of the authentication, in bytes.
    package static let lineLimit = 1024

    private var phase = Phase.authenticating
    private var buffer: [UInt8] = []
    /// Bytes of `buffer` that were read.
    private var offset = 0

    package init() {}

    /// Takes bytes; all events must have been taken before.
    package mutating func bytesReceived(_ bytes: RawSpan) {
        self.buffer.removeFirst(self.offset)
        self.offset = 0
        self.buffer.append(bytes)
    }

    /// - Returns: `nil` until more bytes are received.
    package mutating func nextEvent() throws(BusViolation) -> Event? {
        if case .open = self.phase { return try self.nextMessage().map { .message($0) } }
        guard let line = try self.nextLine() else { return nil }
        let word = line.prefix { $0 != " " }
        switch (self.phase, word) {
        case (.authenticating, "DATA"):
            self.phase = .awaitingPermission
            return .send(Array("DATA\r\n".utf8))
        case (.authenticating, "OK"), (.awaitingPermission, "OK"):
            self.phase = .open
            return .opened
        case (_, "REJECTED"), (_, "ERROR"): throw BusViolation.refused
        default: throw BusViolation.malformed
        }
    }

    private mutating func nextLine() throws(BusViolation) -> String? {
        let rest = self.buffer[self.offset...]
        guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else {
            guard rest.count < Self.lineLimit else { throw BusViolation.tooLong }
            return nil
        }
        let line = rest[..<end]
        guard line.count < Self.lineLimit else { throw BusViolation.tooLong }
        guard line.last == UInt8(ascii: "\r"), line.allSatisfy({ $0 < 0x80 }) else { throw BusViolation.malformed }
        self.offset = end + 1
        return String(decoding: line.dropLast(), as: UTF8.self)
    }

    private mutating func nextMessage() throws(BusViolation) -> BusMessage? {
        let rest = self.buffer[self.offset...]
        guard rest.count >= BusMessage.fixedLength else { return nil }
        let length = try BusMessage.length(Array(rest.prefix(BusMessage.fixedLength)))
        guard rest.count >= length else { return nil }
        self.offset += length
        return try BusMessage(Array(rest.prefix(length)))
    }
}
