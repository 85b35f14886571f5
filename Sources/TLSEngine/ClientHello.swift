/// The parts of a ClientHello that are used to route a connection before TLS is terminated (RFC 8446 §4.1.2).
public struct ClientHello: Sendable, Hashable {
    /// The host name of the SNI extension (RFC 6066 §3); `nil` without one.
    public let serverName: String?
    /// The protocols of the ALPN extension in the client's order (RFC 7301 §3.1); invalid UTF-8 is replaced by U+FFFD.
    public let applicationProtocols: [String]

    public init(serverName: String?, applicationProtocols: [String]) {
        self.serverName = serverName
        self.applicationProtocols = applicationProtocols
    }

    /// Parses the body of a ClientHello message.
    /// - Returns: `nil` if a length is inconsistent, SNI or ALPN occurs twice, or the server name is malformed.
    fileprivate init?(reading body: inout ByteCursor) {
        // legacy_version and random, then session identifier, cipher suites and compression methods.
        guard body.read(34) != nil,
            let session = body.readUInt8(), session <= 32, body.read(session) != nil,
            let ciphers = body.readUInt16(), ciphers >= 2, ciphers % 2 == 0, body.read(ciphers) != nil,
            let methods = body.readUInt8(), methods >= 1, body.read(methods) != nil
        else { return nil }
        var serverName: String?
        var protocols: [String]?
        if !body.isAtEnd {
            guard let count = body.readUInt16(), var extensions = body.read(count), body.isAtEnd else { return nil }
            while !extensions.isAtEnd {
                guard let type = extensions.readUInt16(), let count = extensions.readUInt16(),
                    var content = extensions.read(count)
                else { return nil }
                switch type {
                case 0:
                    guard serverName == nil, let name = Self.readServerName(&content) else { return nil }
                    serverName = name
                case 16:
                    guard protocols == nil, let names = Self.readProtocols(&content) else { return nil }
                    protocols = names
                default: break
                }
            }
        }
        self.init(serverName: serverName, applicationProtocols: protocols ?? [])
    }

    /// RFC 6066 §3: one name of type 0 (host_name), in ASCII.
    private static func readServerName(_ content: inout ByteCursor) -> String? {
        guard let count = content.readUInt16(), var list = content.read(count), content.isAtEnd,
            list.readUInt8() == 0, let length = list.readUInt16(), (1...255).contains(length),
            let name = list.read(length)?.rest, name.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return String(decoding: name, as: UTF8.self)
    }

    /// RFC 7301 §3.1: names of 1 to 255 bytes, at least one.
    private static func readProtocols(_ content: inout ByteCursor) -> [String]? {
        guard let count = content.readUInt16(), var list = content.read(count), content.isAtEnd, !list.isAtEnd else {
            return nil
        }
        var names: [String] = []
        while !list.isAtEnd {
            guard let length = list.readUInt8(), length > 0, let name = list.read(length)?.rest else { return nil }
            names.append(String(decoding: name, as: UTF8.self))
        }
        return names
    }
}

/// Detects TLS from the first bytes of a connection and parses the ClientHello without consuming it.
///
/// Call `examine(_:)` with an ever longer prefix; each byte is inspected once. The result does not depend on how the
/// bytes were split.
public struct ClientHelloSniffer: Sendable {
    public enum Detection: Sendable, Hashable {
        /// More bytes are needed.
        case incomplete
        /// The first or the second byte is not that of a TLS handshake record.
        case plain
        case clientHello(ClientHello)
        /// A TLS record without a valid ClientHello within the limit. The TLS engine will report what is wrong.
        case unreadable
    }

    /// Largest accepted ClientHello in bytes.
    private let limit: Int
    /// The handshake message reassembled so far; at most `limit` plus one record.
    private var message: [UInt8] = []
    /// Offset of the next record in the prefix.
    private var position = 0
    private var finding = Detection.incomplete

    /// - Parameter limit: largest accepted ClientHello in bytes; a larger one is `.unreadable`. Default: 16 KiB, more
    ///   than post-quantum key shares need.
    public init(limit: Int = 16 * 1024) {
        self.limit = max(0, limit)
    }

    /// - Parameter bytes: everything received so far, from the first byte of the connection on.
    /// - Returns: the detection; final once it is not `.incomplete`.
    public mutating func examine(_ bytes: RawSpan) -> Detection {
        guard self.finding == .incomplete else { return self.finding }
        self.finding = self.look(at: bytes)
        if self.finding != .incomplete { self.message = [] }
        return self.finding
    }

    private mutating func look(at bytes: RawSpan) -> Detection {
        if bytes.byteCount > 0, bytes[byte: 0] != 0x16 { return .plain }
        if bytes.byteCount > 1, bytes[byte: 1] != 0x03 { return .plain }
        while bytes.byteCount - self.position >= 5 {
            let start = self.position + 5
            let count = Int(bytes[byte: start - 2]) << 8 | Int(bytes[byte: start - 1])
            // RFC 8446 §5.1: a handshake record holds 1 to 2^14 bytes.
            guard bytes[byte: self.position] == 0x16, bytes[byte: self.position + 1] == 0x03,
                (1...16_384).contains(count)
            else { return .unreadable }
            guard count <= bytes.byteCount - start else { return .incomplete }
            for offset in start..<start + count { self.message.append(bytes[byte: offset]) }
            self.position = start + count
            let finding = self.readMessage()
            if finding != .incomplete { return finding }
        }
        return .incomplete
    }

    private func readMessage() -> Detection {
        guard self.message[0] == 1 else { return .unreadable }
        guard self.message.count >= 4 else { return .incomplete }
        let count = Int(self.message[1]) << 16 | Int(self.message[2]) << 8 | Int(self.message[3])
        guard count <= self.limit else { return .unreadable }
        guard self.message.count - 4 >= count else { return .incomplete }
        var body = ByteCursor(self.message, 4..<4 + count)
        return ClientHello(reading: &body).map { .clientHello($0) } ?? .unreadable
    }
}

/// Reads the fields of a message in order; a truncated field is `nil`.
private struct ByteCursor {
    private let bytes: [UInt8]
    private var position: Int
    private let end: Int

    /// `range` must lie within `bytes`.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        self.position = range.lowerBound
        self.end = min(range.upperBound, bytes.count)
    }

    var isAtEnd: Bool { self.position == self.end }

    mutating func readUInt8() -> Int? {
        guard let range = self.take(1) else { return nil }
        return Int(self.bytes[range.lowerBound])
    }

    mutating func readUInt16() -> Int? {
        guard let range = self.take(2) else { return nil }
        return Int(self.bytes[range.lowerBound]) << 8 | Int(self.bytes[range.lowerBound + 1])
    }

    /// Reads the next `count` bytes as a nested message.
    mutating func read(_ count: Int) -> ByteCursor? {
        guard let range = self.take(count) else { return nil }
        return ByteCursor(self.bytes, range)
    }

    /// The bytes not read yet.
    var rest: ArraySlice<UInt8> { self.bytes[self.position..<self.end] }

    private mutating func take(_ count: Int) -> Range<Int>? {
        guard count >= 0, count <= self.end - self.position else { return nil }
        defer { self.position += count }
        return self.position..<self.position + count
    }
}
