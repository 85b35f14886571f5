/// Follows one direction of a WebSocket for a relay that forwards its frames as they are: holds them to the rules of
/// framing, and knows where one ends, so that a ping or a Close of the relay's own can be placed between two.
///
/// Looks at headers and control frames alone: text is not checked, and nothing is unmasked or inflated. Allocates
/// nothing for data frames. Use `WebSocketEngine` where the payload matters.
/// - Source: RFC 6455 §5.
package struct FrameScanner: Sendable {
    /// Who sends the frames: a client's must be masked.
    package let sender: Role
    /// The bits that both ends have agreed on.
    package let reservedBits: ReservedBits
    let messageLimit: Int

    /// Payload of the current data frame still to come.
    private var frameLeft = 0
    private var inFrame = false
    private var isOver = false
    private var inMessage = false
    private var messageLength = 0
    private var frame = FramePiece(
        range: 0..<0, headerSize: 0, opcode: .binary, kind: .binary, isCompressed: false, isFinal: true, endsFrame: true
    )

    /// - Parameter maximumMessageSize: in bytes of payload on the wire, over all fragments: of a compressed message,
    ///   its compressed bytes. Beyond it 1009, told from the header alone. `nil` for no limit; negative counts as 0.
    package init(from sender: Role, reservedBits: ReservedBits = .none, maximumMessageSize: Int? = nil) {
        self.sender = sender
        self.reservedBits = reservedBits
        self.messageLimit = max(maximumMessageSize ?? .max, 0)
    }

    /// Whether all that was scanned so far ends with a whole frame, so that another may be put there.
    package var isAtFrameBoundary: Bool { !self.inFrame }

    /// Whether a message was begun and its last frame not yet.
    package var isInsideMessage: Bool { self.inMessage }

    /// Whether all that was scanned so far ends with a whole message, and more may come.
    var isAtRest: Bool { !self.inFrame && !self.inMessage && !self.isOver }

    /// Finds the next piece in `bytes` at `position` on.
    ///
    /// - Parameter position: moved past what was found. Bytes from there on (less than 139) must come again, in front
    ///   of what follows.
    /// - Returns: `nil` when more bytes are needed, or after a violation or a Close.
    package mutating func scan(_ bytes: RawSpan, at position: inout Int) -> ScannedFrame? {
        guard !self.isOver else { return nil }
        do throws(PeerViolation) {
            if self.inFrame { return self.payload(bytes, at: &position) }
            let header = try FrameHeader.decode(
                bytes, at: position, from: self.sender, reservedBits: self.reservedBits)
            guard let header else { return nil }
            if header.opcode.isControl { return try self.control(header, bytes, at: &position) }
            try self.begin(header)
            let start = position
            position += header.size
            return .data(self.piece(bytes, from: start, at: &position))
        } catch {
            self.isOver = true
            return .violation(error)
        }
    }

    private mutating func begin(_ header: FrameHeader) throws(PeerViolation) {
        let starts = header.opcode != .continuation
        guard starts || self.inMessage else { throw PeerViolation(.unexpectedContinuation) }
        guard !starts || !self.inMessage else { throw PeerViolation(.unfinishedMessage) }
        if starts {
            self.messageLength = 0
            self.frame.kind = header.opcode == .text ? .text : .binary
            self.frame.isCompressed = header.isCompressed
        }
        guard header.payloadLength <= self.messageLimit - self.messageLength else {
            throw PeerViolation(.messageTooLong)
        }
        self.messageLength += header.payloadLength
        self.frame.opcode = header.opcode
        self.frame.isFinal = header.isFinal
        self.frameLeft = header.payloadLength
        self.inMessage = !header.isFinal
        self.inFrame = true
    }

    private mutating func payload(_ bytes: RawSpan, at position: inout Int) -> ScannedFrame? {
        guard position < bytes.byteCount else { return nil }
        return .data(self.piece(bytes, from: position, at: &position))
    }

    /// - Parameter start: where the frame's header stands; the position itself behind a frame's first piece.
    private mutating func piece(_ bytes: RawSpan, from start: Int, at position: inout Int) -> FramePiece {
        let count = min(self.frameLeft, bytes.byteCount - position)
        var piece = self.frame
        piece.headerSize = position - start
        position += count
        self.frameLeft -= count
        self.inFrame = self.frameLeft > 0
        piece.range = start..<position
        piece.endsFrame = !self.inFrame
        return piece
    }

    private mutating func control(
        _ header: FrameHeader, _ bytes: RawSpan, at position: inout Int
    ) throws(PeerViolation) -> ScannedFrame? {
        guard let payload = header.controlPayload(bytes, at: position) else { return nil }
        let range = position..<(position + header.size + header.payloadLength)
        position = range.upperBound
        switch header.opcode {
        case .ping: return .ping(payload, range)
        case .pong: return .pong(payload, range)
        case .close:
            let (code, reason) = try ClosePayload.read(payload)
            self.isOver = true
            return .close(code, reason: reason, range)
        case .continuation, .text, .binary: return nil
        }
    }
}
