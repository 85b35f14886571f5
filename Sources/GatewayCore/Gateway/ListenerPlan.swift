import StreamTransport
import TLSEngine
import WebSocketProtocol

/// A listener ready to work: its settings, and the TLS context that a reload swaps the material of.
package final class ListenerPlan: Sendable {
    package let configuration: ListenerConfiguration
    let context: TLSContext?
    /// Routes that requests are compared with, and the table that finds them by their place in the list.
    let routes: [RoutePlan]
    private let table: RouteTable
    /// The one route of a listener without requests.
    let route: RoutePlan?

    init(_ configuration: ListenerConfiguration, context: TLSContext?, routes: [RoutePlan], route: RoutePlan?) {
        self.configuration = configuration
        self.context = context
        self.routes = routes
        self.table = RouteTable(routes.map(\.configuration))
        self.route = route
    }

    /// What a request asks for, if it may have it. A path that leads nowhere is told before what else may be wrong with
    /// the request.
    func find(_ head: RequestHead) -> Result<FoundRoute, HandshakeRefusal> {
        guard head.fields.count("Host") == 1 || head.version != .http11 else {
            return .failure(HandshakeRefusal(status: 400, explanation: "Send exactly one Host field."))
        }
        switch self.table.find(host: head.fields["Host"], target: head.target) {
        case .malformed: return .failure(.malformedTarget)
        case .none: return .failure(.noRoute)
        case .route(let match):
            let route = self.routes[match.index]
            switch ServerHandshake.evaluate(head) {
            case .failure(let refusal): return .failure(refusal)
            case .success(let request):
                guard route.origins.allows(head.fields["Origin"]) else { return .failure(.originRefused) }
                return .success(FoundRoute(route: route, match: match, request: request))
            }
        }
    }
}
