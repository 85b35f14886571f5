import StreamTransport
import TLSEngine
import WebSocketProtocol

/// A proxy, and how connections are made through it.
package struct ProxyServer: Sendable {
    package enum Method: Hashable, Sendable {
        /// The connection ends at the proxy, to which its owner sends requests in absolute form (RFC 9112 §3.2.2).
        case forwarding
        /// A tunnel of an HTTP proxy (RFC 9110 §9.3.6).
        case connect
        /// SOCKS 4a.
        case socks4(user: String)
        case socks5(ProxyCredential?)
    }

    /// The 407 that answered a `CONNECT` request.
    package struct Challenge: Sendable {
        package let head: ResponseHead
        /// Of the connection that it came on; `nil` without TLS.
        package let tls: TLSMetadata?
        /// Whether the next request goes out on the same connection.
        package let keepsConnection: Bool
    }

    /// Provides the header fields of the next `CONNECT` request, such as `Proxy-Authorization`.
    /// - Parameters:
    ///   - challenge: what answered the request before; `nil` for the first request.
    ///   - completion: called once, from any thread; with `nil` the opening fails with the refusal.
    package typealias Authorize =
        @Sendable (_ challenge: Challenge?, _ completion: @escaping @Sendable ([FieldLine]?) -> Void) -> Void

    package var place: ConnectTarget
    package var method: Method
    /// Whether SOCKS gets the server's name. Otherwise it is resolved here, and the proxy gets an address.
    package var resolvesNames = true
    /// TLS with the proxy itself; `nil` for none.
    package var secure: SecureSettings?
    /// Gives the reason for a failure of TLS with the proxy where `secure` rejected its certificate; `nil` keeps all failures.
    package var explain: (@Sendable (TLSFailure) -> TLSFailure)?
    /// The value of `Proxy-Authorization` in requests to be forwarded; `nil` for none.
    package var authorization: String?
    /// Without it `CONNECT` has no fields but `Host`, and a 407 is a failure.
    package var authorize: Authorize?
    /// Asked of each of the proxy's addresses; `nil` permits all.
    package var permits: ConnectAttempt.Permission?
    /// Called when the proxy cannot be reached, or breaks its protocol.
    package var didFail: (@Sendable () -> Void)?
    /// Called when the proxy has connected to the server.
    package var didTunnel: (@Sendable () -> Void)?

    package init(_ place: ConnectTarget, _ method: Method) {
        self.place = place
        self.method = method
    }

    /// - Parameter fields: of the `CONNECT` request.
    /// - Returns: `nil` if the connection ends at the proxy.
    func client(to destination: ProxyDestination, fields: [FieldLine]) throws(ProxyFailure) -> (any ProxyClient)? {
        switch self.method {
        case .forwarding: nil
        case .connect: try ConnectClient(to: destination, fields: fields)
        case .socks4(let user): try SOCKS4Client(to: destination, user: user)
        case .socks5(let credential): try SOCKS5Client(to: destination, credential: credential)
        }
    }

    /// Whether a name must be resolved before the proxy is asked.
    func needsAddress(of destination: ProxyDestination) -> Bool {
        guard case .name = destination, !self.resolvesNames else { return false }
        return switch self.method {
        case .forwarding, .connect: false
        case .socks4, .socks5: true
        }
    }

    /// Whether the proxy can be asked for this address.
    func takes(_ address: SocketAddress) -> Bool {
        switch (self.method, address) {
        case (_, .ipv4): true
        case (.socks4, .ipv6), (_, .unix): false
        case (.forwarding, .ipv6), (.connect, .ipv6), (.socks5, .ipv6): true
        }
    }
}
