import StreamTransport
import TLSEngine

/// Why an exchange ended without a whole response.
package enum ExchangeFailure: Error, Sendable, Hashable {
    /// `Exchange.cancel` was called.
    case cancelled
    /// The caller's fault: the request cannot be sent.
    case request(RequestFault)
    /// No connection came about: the name, the address, or a deadline in one of the phases, TLS's included.
    case connecting(TransportFailure)
    /// `PoolSettings.admits` refused every address that there is.
    case notAdmitted
    /// The handshake failed, or a record of the open connection.
    case securing(TLSFailure)
    /// The connection was open, and for `ExchangeOrder.idleTimeout` no byte went either way though we waited for one.
    case idle
    /// The connection ended before the response's head.
    case connectionLost(ConnectionLoss)
    /// The connection ended within the content: never passed off as a short success.
    /// - Parameters:
    ///   - received: bytes of content.
    ///   - expected: as announced; `nil` if the response was chunked or ended with the connection.
    case truncated(received: Int64, expected: Int64?, cause: TransportFailure?)
    /// The server broke a rule; what came of the response must not be trusted.
    case violation(ResponseViolation)
    /// The body could not be sent.
    case body(BodyFailure)
    /// The order names a proxy, which is not spoken to yet.
    case proxyUnsupported
    /// The pool was closed.
    case poolClosed
}
