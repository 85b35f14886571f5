/// What the first bytes of a connection hold.
package enum ProxyHeaderAnswer: Hashable, Sendable {
    /// A header may be under way: ask again with more bytes behind these.
    case incomplete
    /// No header: the bytes are the connection's own.
    case absent
    /// A header of `length` bytes; what follows is the connection's own.
    case header(ProxyHeader, length: Int)
    case violation(ProxyHeaderViolation)
}
