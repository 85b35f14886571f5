import WireText

/// `Sec-WebSocket-Accept` (RFC 6455 §1.3).
public enum AcceptKey {
    /// The value of `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`.
    public static func value(for key: String) -> String {
        var digest = MessageDigest(.sha1)
        digest.update(key.utf8.span.bytes)
        digest.update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8.span.bytes)
        return Base64.encoded(digest.finalize())
    }
}
