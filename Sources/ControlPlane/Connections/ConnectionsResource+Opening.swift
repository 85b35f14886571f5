import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore

extension ConnectionsResource {
    /// Opens a connection. Waits until it stands, unless the client prefers not to wait (`Prefer: respond-async`).
    func open(_ call: ControlCall) async throws -> Response {
        guard self.context.phase != .draining else { throw ControlProblem.draining }
        var order = try ClientOrderReading(try await call.decode(OpenRequest.self)).order()
        let guarded = TargetGuard(self.context.targets, url: order.url)
        guarded.stand(before: &order)
        switch await self.gateway.open(order, waits: !call.prefersAsynchronous) {
        case .success(let key):
            return try await self.shown(key, status: .created, headers: [.location: "/v1/connections/\(key)"])
        case .failure where guarded.hasRefused: throw guarded.problem
        case .failure(let failure):
            var problem = ControlProblem(failure.failure)
            // Nothing was created: what a live connection's end would mean is meant of the attempt here.
            if [409, 410].contains(problem.status) { problem.status = 502 }
            if let key = failure.key, case .closed(let report) = await self.gateway.find(key) {
                problem.connection = ConnectionWriter(anchor: self.context.anchor).json(report)
            }
            throw problem
        }
    }
}
