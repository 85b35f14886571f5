import StreamTransport
import WebSocketProtocol

/// An opening request that a route was found for, with all that is known of who asks.
final class AskedRoute: Sendable {
    /// After every check of RFC 6455 §4.2.1.
    let request: OpeningRequest
    let match: RouteMatch
    let isSecure: Bool
    let client: SocketAddress
    let peer: SocketAddress
    let plan: ListenerPlan

    init(_ found: FoundRoute, isSecure: Bool, client: SocketAddress, peer: SocketAddress, plan: ListenerPlan) {
        self.request = found.request
        self.match = found.match
        self.isSecure = isSecure
        self.client = client
        self.peer = peer
        self.plan = plan
    }

    /// The request as it came.
    var head: RequestHead { self.request.head }
}
