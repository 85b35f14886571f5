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
            Operation(
                "getLiveness", .get, "/livez", .none, Self.probe("Whether every loop of the gateway responds")
            ) { _ in await self.liveness() },
            Operation(
                "getReadiness", .get, "/readyz", .none, Self.probe("Whether the gateway accepts connections")
            ) { _ in self.health(self.context.phase == .ready) },
            Operation("getStartup", .get, "/startupz", .none, Self.probe("Whether the gateway has started")) { _ in
                self.health(self.context.phase != .starting)
            },
            Operation(
                "getVersion", .get, "/version", .read,
                OperationDocument(
                    "Name and version of the service",
                    responses: [.init(200, "Name and version", .json(ServiceVersion.self))])
            ) { _ in
                .json(ServiceVersion { ($0.name, $0.version, $0.api) = ("sluice", self.context.version, "/v1") })
            },
        ]
        .flatMap(\.withVersionedAlias)
    }

    private static func probe(_ summary: String) -> OperationDocument {
        OperationDocument(
            summary,
            responses: [.init(200, "Yes", .json(ServiceHealth.self)), .init(503, "No", .json(ServiceHealth.self))])
    }

    private func health(_ isHealthy: Bool, _ reason: String? = nil) -> Response {
        let phase = self.context.phase.rawValue
        let health = ServiceHealth {
            $0.status = isHealthy ? "ok" : reason ?? "not \(phase == "draining" ? "taking more" : "up yet")"
            $0.phase = phase
        }
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
