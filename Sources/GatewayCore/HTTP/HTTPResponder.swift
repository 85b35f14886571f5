import GatewayConfiguration
import StreamTransport
import WireText

/// Answers the plain HTTP requests of a route. Shared by all loops.
///
/// The connection has checked the request before: its framing, host, origin and method. A responder answers through the
/// exchange, at once or later, on the exchange's loop; each exchange must be finished or aborted.
package protocol HTTPResponder: AnyObject, Sendable {
    /// Others get 405 with this list. `HEAD` beside `GET`: the exchange leaves the body out.
    var methods: [String] { get }
    /// Largest body of a request, in bytes; above it 413. With 0 a body has no meaning, and a short one is dropped.
    var bodyLimit: Int { get }
    func respond(to request: PlainRequest, _ exchange: PlainExchange)
    /// Fields of a refusal by the connection, such as 401, 405 and 413. None unless the responder has some.
    func refusalFields(_ head: RequestHead, of route: RoutePlan) -> [FieldLine]
}

extension HTTPResponder {
    package func refusalFields(_ head: RequestHead, of route: RoutePlan) -> [FieldLine] { [] }
}

/// A request with its whole body, and the route that it takes.
package struct PlainRequest: Sendable {
    /// Without the token, on a route that authenticates.
    package let head: RequestHead
    package let match: RouteMatch
    package let route: RoutePlan
    /// Whether the client spoke TLS to us.
    package let isSecure: Bool
    /// The peer of the connection, or the source of a trusted PROXY header.
    package let client: SocketAddress
    /// Whether this is a proxy that names its clients in the fields of requests.
    let isFromProxy: Bool
    /// Of its token; `nil` unless the route authenticates.
    let grant: AccessGrant?
    /// Without its transfer coding.
    package var body: [UInt8] = []

    init(
        _ head: RequestHead, _ match: RouteMatch, route: RoutePlan, isSecure: Bool, client: SocketAddress,
        isFromProxy: Bool, grant: AccessGrant?
    ) {
        self.head = grant?.head ?? head
        self.match = match
        self.route = route
        self.isSecure = isSecure
        self.client = client
        self.isFromProxy = isFromProxy
        self.grant = grant
    }
}

/// Writes the body of a response over several turns. Held by its exchange until that is over.
package protocol HTTPBodySource: AnyObject {
    /// The client took what was queued. Called after `PlainExchange.awaitProgress`, and after each turn that left bytes
    /// queued.
    func outputProgressed(_ exchange: PlainExchange)
    /// The client ended its side, and may still read. A source without an end finishes now.
    func inputClosed(_ exchange: PlainExchange)
    /// The gateway drains: a source without an end finishes now.
    func drain(_ exchange: PlainExchange)
    /// The exchange is over: finished, aborted, or its connection lost. Called once, last.
    func exchangeEnded()
}

extension HTTPBodySource {
    package func inputClosed(_ exchange: PlainExchange) {}
    package func drain(_ exchange: PlainExchange) {}
    package func exchangeEnded() {}
}

/// Length of a response's body.
package enum HTTPBodyLength: Hashable, Sendable {
    case bytes(Int64)
    /// Unknown, perhaps without an end: in chunks, to a client of HTTP/1.0 until the connection closes.
    case open
    /// A status without a body: 204, 304.
    case none
}

/// Deadlines and bounds of plain HTTP beside those of the listener.
enum HTTPBounds {
    /// Idle time between two requests.
    static let keepAlive = Duration.seconds(60)
    /// From the end of a request's head to the end of its body.
    static let bodyTimeout = Duration.seconds(30)
    /// A client that takes no byte of a response for so long is reset.
    static let stallTimeout = Duration.seconds(30)
    /// Checks within that time.
    static let stallChecks = 3
    /// Longest body that is dropped where it has no meaning.
    static let droppedBody = 64 << 10
    /// Nothing more of a response is read or made while so many bytes are queued.
    static let highWatermark = 128 << 10
}
