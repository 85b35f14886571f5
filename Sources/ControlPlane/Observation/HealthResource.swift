import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import StreamTransport

/// `/livez`, `/readyz`, `/startupz`, `/version`.
struct HealthResource: Sendable {
    /// Response time of a loop above which the process counts as stuck.
    private static let loopTimeout = Duration.seconds(2)

    let context: ControlContext

    var operations: [Operation] {
        [
            Operation("getLiveness", .get, "/livez", .none) { _ in await self.liveness() },
            Operation("getReadiness", .get, "/readyz", .none) { _ in self.health(self.context.phase == .ready) },
            Operation("getStartup", .get, "/startupz", .none) { _ in self.health(self.context.phase != .starting) },
            Operation("getVersion", .get, "/version", .read) { _ in
                .json(ServiceVersion(name: "sluice", version: self.context.version, api: "/v1"))
            },
        ]
        .flatMap(\.withVersionedAlias)
    }

    private func health(_ isHealthy: Bool, _ reason: String? = nil) -> Response {
        let phase = self.context.phase.rawValue
        let health = ServiceHealth(
            status: isHealthy ? "ok" : reason ?? "not \(phase == "draining" ? "taking more" : "up yet")", phase: phase)
        return .json(health, status: isHealthy ? .ok : .serviceUnavailable)
    }

    /// Whether every loop responds.
    private func liveness() async -> Response {
        for loop in self.context.gateway.loops {
            let responds = await Waiting.forCallback(within: Self.loopTimeout) { done in loop.execute(done) }
            guard responds else { return self.health(false, "a loop does not answer") }
        }
        return self.health(true)
    }
}
