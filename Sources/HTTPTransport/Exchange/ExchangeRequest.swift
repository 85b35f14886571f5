import SessionTasks
import StreamTransport
import WireText

/// One request, with its destination, timeouts and priority.
package struct ExchangeRequest: Sendable {
    package var origin: ServerEndpoint
    /// `nil` to connect directly. With `.forwarding` the request is sent in absolute form; the scheme is then `http`.
    package var proxy: ProxyServer?
    /// Needed for `https`. HTTP/2 is used if the context offers `h2` by ALPN and the server chooses it.
    package var secure: SecureSetup?
    /// Without TLS: uses HTTP/2 because the server is known to speak it (RFC 9113 §3.3). Default: false.
    package var assumesHTTP2 = false
    package var head: RequestHead
    package var body: RequestBody = .none

    /// Exchanges that wait for a connection are served by priority, 0 to 1, then by arrival. Default: 0.5.
    package var priority: Float = 0.5
    /// Only connections of the same identities are used, the server's and a forwarding proxy's. Default: `nil`, connections
    /// that are not authenticated.
    package var identity: ConnectionIdentity?
    package var proxyIdentity: ConnectionIdentity?
    /// Keeps the connection for further exchanges of the same lease. HTTP/1.1 only. Default: `nil`.
    package var lease: ConnectionLease?
    /// The request makes sense on the connection of its lease only: it is not sent on another. Default: false.
    package var isBoundToLease = false
    /// Whether the request may be written behind others when all connections are busy (RFC 9112 §9.3.2). Only for requests
    /// without a body whose method is safe, over HTTP/1.1. Default: false.
    package var usesPipelining = false
    /// Whether the request may be sent as early data of TLS 1.3 (RFC 8470): it must be safe, and have no body.
    /// Default: false.
    package var allowsEarlyData = false
    /// Opens a new connection even if an idle one exists. Default: false.
    package var needsFreshConnection = false
    /// Which ways the connection may take. Connections for other ways are not used.
    package var path = PathOptions()
    /// Looks the server's name up with authenticated answers only, by `PoolSettings.resolveAuthenticated`. Default: false.
    package var needsAuthenticatedName = false
    /// Waits where this machine has no way to the server, until there is one, instead of failing. No timeout runs
    /// meanwhile. Default: false.
    package var waitsForConnectivity = false
    /// For name resolution and connecting together. Default: 60 seconds.
    package var connectTimeout: Duration = .seconds(60)
    /// Longest time on an open connection without a byte in either direction, or an acknowledgement of the body's. It does not run while the consumer has no
    /// demand or the body source has no bytes. Also the longest time to wait for a server that allows no HTTP/2 streams.
    /// Default: 60 seconds; `nil`: none.
    package var idleTimeout: Duration? = .seconds(60)
    /// Sends the head with `Expect: 100-continue` and waits this long for `100 Continue` before the body is sent
    /// (RFC 9110 §10.1.1). Default: `nil`, the body follows at once.
    package var continueTimeout: Duration?
    /// Marks the packets while the connection carries this exchange; those of connecting are not marked.
    /// Default: `.standard`.
    package var trafficClass = TrafficClass.standard
    /// Whether `ExchangeMetrics` contains instants and the connection: reading clocks takes time. Default: true.
    package var isMeasured = true

    package init(_ origin: ServerEndpoint, head: RequestHead = RequestHead(method: "GET", target: "/")) {
        self.origin = origin
        self.head = head
    }
}
