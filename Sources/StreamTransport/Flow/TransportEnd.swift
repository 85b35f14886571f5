/// How a connection ended.
package enum TransportEnd: Hashable, Sendable {
    /// We closed it, after everything was sent and FIN came or the linger time was over.
    case closed
    /// We reset it.
    case abandoned
    case failed(TransportFailure)
}
