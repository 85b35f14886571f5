import ControlAPI
import GatewayCore
import HTTPTypes
import Hummingbird
import HummingbirdCore

extension ConnectionsResource {
    /// Opens a connection, or a tunnel between two.
    func open(_ call: ControlCall) async throws -> Response {
        guard self.context.phase != .draining else { throw ControlProblem.draining }
        let body = try await call.jsonBytes()
        guard JSONBody.hasMember(of: Set(TunnelSide.allCases.map(\.rawValue)), in: body) else {
            return try await self.openOne(try JSONBody.decode(OpenRequest.self, from: body), call)
        }
        return try await self.openTunnel(try JSONBody.decode(TunnelRequest.self, from: body), call)
    }

    private func openOne(_ request: OpenRequest, _ call: ControlCall) async throws -> Response {
        var order = try ClientOrderReading(request).order()
        let guarded = TargetGuard(self.context.targets, url: order.url)
        guarded.stand(before: &order)
        switch await self.gateway.open(order, named: { call.progress?.name($0) }) {
        case .success(let key): return try await self.opened(key)
        case .failure where guarded.hasRefused: throw guarded.problem
        case .failure(let failure): throw await self.problem(failure)
        }
    }

    private func openTunnel(_ request: TunnelRequest, _ call: ControlCall) async throws -> Response {
        var guards: [TunnelSide: TargetGuard] = [:]
        let targets = self.context.targets
        let order = try TunnelOrderReading(request).order { side, order in
            let guarded = TargetGuard(targets, url: order.url)
            guarded.stand(before: &order)
            guards[side] = guarded
        }
        switch await self.gateway.open(order, named: { call.progress?.name($0) }) {
        case .success(let key): return try await self.opened(key)
        case .failure(let failure):
            let side = failure.key?.side ?? .downstream
            if let guarded = guards[side], guarded.hasRefused { throw guarded.problem.inside("/\(side.rawValue)") }
            var problem = await self.problem(failure)
            problem.detail = "\(side.rawValue): \(problem.detail)"
            throw problem.at(pointer: "/\(side.rawValue)/url")
        }
    }

    private func opened(_ key: ConnectionKey) async throws -> Response {
        try await self.shown(key, status: .created, headers: [.location: "/v1/connections/\(key)"])
    }

    private func problem(_ failure: ClientFailure) async -> ControlProblem {
        var problem = ControlProblem(failure.failure)
        // Nothing was created: what a live connection's end would mean is meant of the attempt here.
        if [409, 410].contains(problem.status) { problem.status = 502 }
        if let key = failure.key, case .closed(let report) = await self.gateway.find(key) {
            problem.connection = ConnectionWriter(anchor: self.context.anchor).json(report)
        }
        return problem
    }
}
