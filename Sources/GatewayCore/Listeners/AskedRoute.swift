import StreamTransport
import WebSocketProtocol

/// An opening request that a route was found for, with all that is known of who asks.
struct AskedRoute {
    let head: RequestHead
    /// The same request after every check of RFC 6455 §4.2.1.
    let request: OpeningRequest
    let match: RouteMatch
    let isSecure: Bool
    let client: SocketAddress
    let peer: SocketAddress
    let plan: ListenerPlan
}
