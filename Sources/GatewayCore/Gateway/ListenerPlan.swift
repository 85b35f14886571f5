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
    /// - Parameter isSecure: whether the request came through TLS.
    func find(_ head: RequestHead, isSecure: Bool) throws(HandshakeRefusal) -> AskedRoute {
        let host = head.fields.only("Host")
        guard host.occursOnce || head.version != .http11 else {
            throw HandshakeRefusal(status: 400, explanation: "Send exactly one Host field.")
        }
        switch self.table.find(host: host.first, target: head.target) {
        case .malformed: throw .malformedTarget
        case .none: throw .noRoute
        case .route(let match):
            let route = self.routes[match.index]
            let request = try ServerHandshake.check(head)
            guard route.origins.allows(head.fields["Origin"]) else { throw .originRefused }
            return AskedRoute(route, match, request, isSecure: isSecure, plan: self)
        }
    }
}
