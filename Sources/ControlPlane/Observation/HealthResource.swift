import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore
import StreamTransport

/// `/livez`, `/readyz`, `/startupz`, `/version`.
struct HealthResource: Sendable {
    /// How long a loop may take to answer before the process counts as stuck.
    static let loopTimeout = Duration.seconds(2)

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

    private func health(_ isWell: Bool, _ missing: String? = nil) -> Response {
        let phase = self.context.phase.rawValue
        let health = ServiceHealth(
            status: isWell ? "ok" : missing ?? "not \(phase == "draining" ? "taking more" : "up yet")", phase: phase)
        return .json(health, status: isWell ? .ok : .serviceUnavailable)
    }

    /// Whether every loop still takes its turns.
    private func liveness() async -> Response {
        for loop in self.context.gateway.loops {
            let answers = await Waiting.forCallback(within: Self.loopTimeout) { answer in loop.execute(answer) }
            guard answers else { return self.health(false, "a loop does not answer") }
        }
        return self.health(true)
    }
}
