import StreamTransport
import TLSEngine

/// What is known of the connection that an exchange uses.
package struct ConnectionMetadata: Sendable, Hashable {
    package var localAddress: SocketAddress?
    package var peerAddress: SocketAddress?
    /// `nil` without TLS.
    package var tls: TLSMetadata?
    /// By its ALPN name.
    package var networkProtocol = "http/1.1"
    /// Whether it served another exchange before; then there are no timings.
    package var isReused = false
    package var timings = ConnectTimings()

    package init() {}
}

extension ConnectionMetadata {
    /// Our address in digits, and our port.
    package var localHost: String? { self.localAddress?.host }
    package var localPort: Int? { self.localAddress?.port.map(Int.init) }

    /// The peer's address in digits, and its port.
    package var peerHost: String? { self.peerAddress?.host }
    package var peerPort: Int? { self.peerAddress?.port.map(Int.init) }
}

/// A connection that ended before the response did, before any of its content.
package struct ConnectionLoss: Sendable, Hashable {
    /// What the system said; `nil` if the server just finished sending.
    package let cause: TransportFailure?
    /// Whether the connection had served another request before: the server may have closed it for being idle, and not
    /// have seen this one.
    package let wasReused: Bool
    /// Whether an informational head had come: the server has seen the request.
    package let responseBegan: Bool
    /// Whether this was the second try, on a fresh connection.
    package let wasRepeated: Bool

    package init(cause: TransportFailure?, wasReused: Bool, responseBegan: Bool, wasRepeated: Bool) {
        self.cause = cause
        self.wasReused = wasReused
        self.responseBegan = responseBegan
        self.wasRepeated = wasRepeated
    }
}

/// When the steps of opening a connection were taken. A step that was not taken, or did not end, is `nil`.
package struct ConnectTimings: Sendable, Hashable {
    package var lookupStart: ContinuousClock.Instant?
    package var lookupEnd: ContinuousClock.Instant?
    package var connectStart: ContinuousClock.Instant?
    package var secureStart: ContinuousClock.Instant?
    package var secureEnd: ContinuousClock.Instant?
    /// With TLS, after its handshake.
    package var connectEnd: ContinuousClock.Instant?

    package init() {}
}
