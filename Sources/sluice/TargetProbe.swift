import GatewayCore
import StreamTransport

/// Asks whether the upstreams can be used at all, for `--require-target`.
struct TargetProbe {
    let loop: Loop

    /// - Throws: `StartFailure.targetUnavailable` when no endpoint of an upstream can be used.
    func requireAll(of plan: GatewayPlan) async throws {
        for route in plan.routes {
            let reasons = await ReachabilityCheck.reasons(route, on: self.loop)
            guard reasons.isEmpty else {
                throw StartFailure.targetUnavailable("the target cannot be reached: \(reasons.joined(separator: "; "))")
            }
        }
    }
}
