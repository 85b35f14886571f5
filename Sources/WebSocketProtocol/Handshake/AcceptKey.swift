/// The proof that a server understood the opening handshake (RFC 6455 §1.3).
public enum AcceptKey {
    /// The value of `Sec-WebSocket-Accept` that answers a `Sec-WebSocket-Key`.
    public static func answering(_ key: String) -> String {
        var message: [UInt8] = []
        // With the padding of the digest.
        message.reserveCapacity(128)
        message.append(contentsOf: key.utf8)
        message.append(contentsOf: "258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)
        return Base64.encode(SHA1.digest(message))
    }
}
