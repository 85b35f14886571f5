import GatewayCore
import StreamTransport

/// Asks whether the upstreams can be reached at all, for `--require-target`.
struct TargetProbe {
    let loop: Loop

    /// - Throws: `StartFailure.targetUnavailable` when no endpoint of an upstream accepts a connection.
    func requireAll(of configuration: GatewayConfiguration) async throws {
        for upstream in configuration.routes.compactMap({ configuration.upstream(of: $0) }) {
            var reasons: [String] = []
            for endpoint in upstream.endpoints {
                guard let reason = await self.reason(endpoint.url, timeout: upstream.connectTimeout) else {
                    reasons = []
                    break
                }
                reasons.append("\(endpoint.url): \(reason)")
            }
            guard reasons.isEmpty else {
                throw StartFailure.targetUnavailable("the target cannot be reached: \(reasons.joined(separator: "; "))")
            }
        }
    }

    /// Why no connection comes about; `nil` if one does.
    private func reason(_ url: EndpointURL, timeout: Duration) async -> String? {
        await ReachabilityCheck.reason(url, on: self.loop, timeout: timeout)
    }
}
