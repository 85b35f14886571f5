import StreamTransport
import WebSocketProtocol

/// An opening request that a route was found for, with all that is known of who asks.
struct AskedRoute {
    let head: RequestHead
    /// The same request after every check of RFC 6455 §4.2.1.
    let request: OpeningRequest
    /// Values of the path's parameters, as the client sent them.
    let parameters: [String: String]
    let isSecure: Bool
    let client: SocketAddress
    let peer: SocketAddress
    let plan: ListenerPlan

    /// The query without its `?`; `nil` for none.
    var query: String? {
        guard let mark = self.head.target.firstIndex(of: "?") else { return nil }
        return String(self.head.target[self.head.target.index(after: mark)...])
    }
}
