import WebSocketProtocol

/// How a WebSocket ended.
public struct WebSocketEnd: Sendable, Hashable {
    /// Whether both Close frames were exchanged (RFC 6455 §7.1.4).
    public let isClean: Bool
    /// The code of the peer's Close frame; `nil` if none came, or it had none.
    public let code: CloseCode?
    /// The reason in the peer's Close frame: UTF-8, at most 123 bytes.
    public let reason: [UInt8]
    /// What went wrong; `nil` when the end was clean.
    public let failure: TaskFailure?
}
