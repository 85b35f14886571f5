/// Tells from a connection's first bytes whether they are TLS, and what the ClientHello asks for, without consuming
/// them.
///
/// Shown a longer prefix each time, it looks at each byte once. The answer depends on the bytes only, not on how they
/// were split.
public struct ClientHelloSniffer: Sendable {
    public enum Finding: Sendable, Hashable {
        /// Could still become anything below; show it more.
        case incomplete
        /// Not TLS: the first byte, or the second, says so.
        case plain
        case clientHello(ClientHello)
        /// Begins as TLS but holds no ClientHello that can be read within the limit. The TLS engine will say what is
        /// wrong.
        case unreadable
    }

    /// Largest ClientHello that is looked into, in bytes.
    private let limit: Int
    /// The handshake message put together so far; at most `limit` and one record.
    private var message: [UInt8] = []
    /// Where in the prefix the next record begins.
    private var position = 0
    private var finding = Finding.incomplete

    /// - Parameter limit: largest ClientHello looked into, in bytes; a larger one is `.unreadable`. Default: 16 KiB,
    ///   beyond what post-quantum key shares need.
    public init(limit: Int = 16 * 1024) {
        self.limit = max(0, limit)
    }

    /// - Parameter bytes: everything received so far, from the connection's first byte on.
    /// - Returns: the finding; once it is not `.incomplete` it stays.
    public mutating func examine(_ bytes: RawSpan) -> Finding {
        guard self.finding == .incomplete else { return self.finding }
        self.finding = self.look(at: bytes)
        if self.finding != .incomplete { self.message = [] }
        return self.finding
    }

    private mutating func look(at bytes: RawSpan) -> Finding {
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

    private func readMessage() -> Finding {
        guard self.message[0] == 1 else { return .unreadable }
        guard self.message.count >= 4 else { return .incomplete }
        let count = Int(self.message[1]) << 16 | Int(self.message[2]) << 8 | Int(self.message[3])
        guard count <= self.limit else { return .unreadable }
        guard self.message.count - 4 >= count else { return .incomplete }
        var body = ByteCursor(self.message, 4..<4 + count)
        return ClientHello(reading: &body).map { .clientHello($0) } ?? .unreadable
    }
}
