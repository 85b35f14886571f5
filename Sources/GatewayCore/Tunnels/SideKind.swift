/// What a side of a tunnel speaks.
package enum SideKind: CaseIterable, Sendable {
    /// Bytes: TCP, TLS or a Unix socket. Either end can finish alone.
    case stream
    /// Messages (RFC 6455). Its Close frame ends both directions.
    case webSocket
}
