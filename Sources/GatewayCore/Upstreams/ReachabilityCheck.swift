import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// Opens and closes one connection as a tunnel would: name resolution, connecting, PROXY header, TLS with verification,
/// opening handshake.
package enum ReachabilityCheck {
    /// Why no endpoint of the route's upstream can be used, one reason for each; empty if one can, or there is none.
    package static func reasons(_ route: RoutePlan, on loop: Loop) async -> [String] {
        guard let upstream = route.upstream else { return [] }
        var reasons: [String] = []
        for (number, endpoint) in upstream.configuration.endpoints.enumerated() {
            guard let reason = await self.reason(upstream, number, route, on: loop) else { return [] }
            reasons.append("\(endpoint.url): \(reason)")
        }
        return reasons
    }

    private static func reason(
        _ upstream: UpstreamPlan, _ endpoint: Int, _ route: RoutePlan, on loop: Loop
    ) async -> String? {
        await withCheckedContinuation { continuation in
            loop.execute {
                let tried = UpstreamRequest(route: route, upstream: upstream).endpoint(endpoint, on: loop)
                tried.task.open {
                    tried.task.forgetEndObservers()
                    Self.close(tried)
                    continuation.resume(returning: nil)
                } ended: { end in
                    let url = upstream.configuration.endpoints[endpoint].url
                    continuation.resume(returning: self.reason(end, tried, url))
                }
            }
        }
    }

    private static func close(_ endpoint: RelayEndpoint) {
        switch endpoint {
        case .stream(let task): task.closeOnLoop()
        case .webSocket(let task):
            task.resumeReading()
            task.close(.normalClosure)
        }
    }

    private static func reason(_ end: TaskEnd, _ endpoint: RelayEndpoint, _ url: EndpointURL) -> String? {
        // Without a client's parameters, the upstream need not know the path.
        if case .status = UpstreamFailure(end.failure, of: endpoint), !url.resource.parameters.isEmpty { return nil }
        return end.failure?.description ?? "the endpoint closed the connection before it was open"
    }
}
