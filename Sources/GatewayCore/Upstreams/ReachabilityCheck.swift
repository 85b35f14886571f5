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
                // There is no client for the forwarding headers.
                let context = ConnectionContext(
                    identifier: 0, listener: "", peer: .unix(path: ""), acceptedAt: loop.now)
                _ = UpstreamAttempt(
                    upstream, endpoint: endpoint, route: route, matched: nil, context: context, on: loop
                ) { result in
                    continuation.resume(returning: self.reason(result, upstream.configuration.endpoints[endpoint].url))
                }
            }
        }
    }

    private static func reason(_ result: Result<RelayEndpoint, UpstreamAttempt.Failure>, _ url: EndpointURL) -> String?
    {
        switch result {
        case .success(.stream(let task)):
            task.closeOnLoop()
            return nil
        case .success(.webSocket(let task)):
            task.resumeReading()
            task.close(.normalClosure)
            return nil
        case .failure(let failure):
            // Without a client's parameters, the upstream need not know the path.
            if case .status = failure.kind, !url.resource.parameters.isEmpty { return nil }
            return failure.detail ?? "no connection came about"
        }
    }
}
