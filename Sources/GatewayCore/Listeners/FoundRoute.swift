import WebSocketProtocol

/// The route that an acceptable opening request leads to.
struct FoundRoute {
    let route: RoutePlan
    let match: RouteMatch
    let request: OpeningRequest
}
