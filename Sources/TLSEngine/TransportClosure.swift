/// What the end of the transport's bytes means.
public enum TransportClosure: Sendable, Hashable {
    /// close_notify came first: everything the peer sent has arrived.
    case clean
    /// No close_notify: bytes may be missing, by accident or by an attacker (RFC 8446 §6.1).
    case truncated
}
