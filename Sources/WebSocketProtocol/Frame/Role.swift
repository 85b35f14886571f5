/// Which end of a WebSocket one is: clients mask what they send, servers must not (RFC 6455 §5.1).
public enum Role: Sendable, Hashable {
    case client
    case server
}
