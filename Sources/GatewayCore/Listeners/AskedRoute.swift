import WebSocketProtocol

/// An opening request that a route was found for, with all that is known of who asks.
final class AskedRoute: Sendable {
    let route: RoutePlan
    /// After every check of RFC 6455 §4.2.1.
    let request: OpeningRequest
    let match: RouteMatch
    let isSecure: Bool
    let plan: ListenerPlan

    init(_ route: RoutePlan, _ match: RouteMatch, _ request: OpeningRequest, isSecure: Bool, plan: ListenerPlan) {
        self.route = route
        self.request = request
        self.match = match
        self.isSecure = isSecure
        self.plan = plan
    }

    /// The request as it came.
    var head: RequestHead { self.request.head }
}
