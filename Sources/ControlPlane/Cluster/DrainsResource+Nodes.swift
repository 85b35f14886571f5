import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore

/// Drains of several nodes of a cluster at once.
extension DrainsResource {
    private static let everyNode = "*"

    /// Starts a drain on each node.
    func start(_ request: BulkRequest, on names: [String], _ call: ControlCall) async throws -> Response {
        guard let cluster = self.context.cluster else {
            throw ControlProblem.invalid("/nodes", "This gateway is not a node of a cluster; leave nodes out.")
        }
        guard call.query.values("node").isEmpty else {
            throw ControlProblem.invalid(parameter: "node", "Name the nodes either here or in the body.")
        }
        let nodes = NodeCaller(cluster: cluster)
        let all = await nodes.nodeNames()
        let selected = names == [Self.everyNode] ? all : Set(names).sorted()
        if let unknown = selected.first(where: { !all.contains($0) }) {
            throw ControlProblem.unknownNode(unknown).at(pointer: "/nodes")
        }
        guard !selected.isEmpty else { throw ControlProblem.invalid("/nodes", "nodes must name at least one node.") }
        var request = request
        request.nodes = nil
        // Refuses an invalid request before a node starts.
        _ = try (BulkSelection(request, defaultCode: 1001), DrainPace(request))
        var answers = NodeAnswers(own: nodes.own)
        var forwarded = NodeRequest(call, target: "/v1/drains")
        forwarded.body = JSONBody.encode(request)
        let timeout = cluster.limits.requestTimeout + .seconds(call.waitPreference() ?? 0)
        async let outcomes = nodes.gather(from: selected.filter { $0 != nodes.own }, timeout: timeout) {
            [forwarded] _ in forwarded
        }
        if selected.contains(nodes.own) {
            let own = try await BufferedResponse(try await self.start(request, waiting: call.waitPreference()))
            answers.add(nodes.own, NodeReply(own))
        }
        for outcome in await outcomes { try answers.add(outcome) }
        if let response = try answers.responseOfNone() { return response }
        return request.preview == true ? Self.preview(answers) : Self.started(answers)
    }

    private static func started(_ answers: NodeAnswers) -> Response {
        let drains = answers.decoded(Drain.self).map(\.model)
        let isOver = drains.allSatisfy { $0.endedAt != nil }
        return .json(
            DrainList {
                $0.items = drains
                $0.unreachable = answers.silent
            }, status: isOver ? .ok : .accepted)
    }

    private static func preview(_ answers: NodeAnswers) -> Response {
        let previews = answers.decoded(BulkAnswer.self)
        return .json(
            BulkAnswer {
                $0.matched = previews.map(\.model.matched).sumOfCounts()
                $0.takesMs = previews.compactMap(\.model.takesMs).max()
                $0.warning =
                    previews.lazy.compactMap { preview in
                        preview.model.warning.map { "\(preview.node): \($0)" }
                    }.first
                $0.unreachable = answers.silent
            })
    }
}
