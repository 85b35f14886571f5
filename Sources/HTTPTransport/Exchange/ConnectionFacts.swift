import StreamTransport
import TLSEngine

/// What is known of the connection that an exchange uses.
package struct ConnectionFacts: Sendable, Hashable {
    package var localAddress: SocketAddress?
    package var peerAddress: SocketAddress?
    /// `nil` without TLS.
    package var tls: TLSFacts?
    /// By its ALPN name.
    package var networkProtocol = "http/1.1"
    /// Whether it served another exchange before; then there are no timings.
    package var isReused = false
    package var timings = ConnectTimings()

    package init() {}
}
