import WireText

/// `Sec-WebSocket-Accept` (RFC 6455 §1.3).
public enum AcceptKey {
    /// The value of `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`.
    public static func value(for key: String) -> String {
        var value: [UInt8] = []
        value.reserveCapacity(28)
        self.append(answering: key, to: &value)
        return String(decoding: value, as: UTF8.self)
    }

    /// Appends the value, 28 bytes.
    static func append(answering key: String, to head: inout [UInt8]) {
        var digest = MessageDigest(.sha1)
        digest.update(key.utf8.span.bytes)
        digest.update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8.span.bytes)
        Base64.append(digest.finalize().span.bytes, to: &head)
    }
}
