import Cluster
import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore

/// `/v1/nodes`: the nodes of the cluster.
struct NodesResource: Sendable {
    let context: ControlContext
    let drains: DrainsResource

    private static let one = PathTemplate("/v1/nodes/{name}", .init("The node's name.", example: "b"))

    var operations: [Operation] {
        [
            Operation(
                "listNodes", .get, "/v1/nodes", .read,
                OperationDocument(
                    "Lists the nodes of the cluster whose leases are valid",
                    responses: [.init(200, "The nodes", .json(NodeList.self))], problems: [409])
            ) { _ in
                let nodes = try await self.nodes()
                return .json(NodeList { $0.items = nodes })
            },
            Operation(
                "getNode", .get, Self.one, .read,
                OperationDocument(
                    "Gets a node of the cluster", responses: [.init(200, "The node", .json(Node.self))],
                    problems: [404, 409])
            ) { call in
                let name = call.parameters["name"] ?? ""
                guard let node = try await self.nodes().first(where: { $0.name == name }) else {
                    throw ControlProblem.unknownNode(name)
                }
                return .json(node)
            },
            Operation(
                "drainNode", .post, Self.one + ":drain", .operate,
                OperationDocument(
                    "Closes all connections of a node at a rate; the node goes on accepting connections until it is stopped",
                    headers: .wait, body: [.json(NodeDrain.self)],
                    responses: [
                        .init(200, "The ended drain", .json(Drain.self)),
                        .init(202, "The running drain", .json(Drain.self), headers: .location),
                    ], problems: [404, 409, 502, 504])
            ) { try await self.drain($0) },
        ]
    }

    /// - Throws: `ControlProblem` 409 without a cluster, 503 while the bus is away.
    private func nodes() async throws -> [Node] {
        guard let cluster = self.context.cluster else { throw ControlProblem.noCluster }
        do throws(ClusterError) {
            return try await cluster.nodes().map { Node($0, isAnswering: $0.name == cluster.nodeName) }
        } catch {
            throw ControlProblem(error, timeout: cluster.limits.gatherTimeout)
        }
    }

    /// Starts a drain of the node's connections, as `/v1/drains` does.
    private func drain(_ call: ControlCall) async throws -> Response {
        guard let cluster = self.context.cluster else { throw ControlProblem.noCluster }
        let request = try await call.decode(NodeDrain.self)
        let body = BulkRequest {
            $0.all = true
            ($0.code, $0.reason) = (request.code, request.reason)
            ($0.ratePerSecond, $0.jitterMs) = (request.ratePerSecond, request.jitterMs)
            $0.deadlineMs = request.deadlineMs
        }
        let name = call.parameters["name"] ?? ""
        guard name != cluster.nodeName else {
            return try await self.drains.start(body, waiting: call.waitPreference())
        }
        var forwarded = NodeRequest(call, target: "/v1/drains")
        forwarded.body = JSONBody.encode(body)
        let timeout = cluster.limits.requestTimeout + .seconds(call.waitPreference() ?? 0)
        return try await NodeCaller(cluster: cluster).send(forwarded, to: name, timeout: timeout).response
    }
}

extension Node {
    fileprivate init(_ record: NodeRecord, isAnswering: Bool) {
        self.init {
            $0.name = record.name
            $0.answering = isAnswering
            $0.version = record.version
            $0.startedAt = WallClock.text(milliseconds: record.startTime)
            $0.connections = record.load.connections
            $0.rooms = record.load.rooms
            $0.clients = record.load.clients
            $0.processorShare = record.load.processorShare
            $0.draining = record.load.isDraining
            $0.leaseMs = Double(record.remainingLease.wholeMicroseconds) / 1000
            $0.clockDifferenceMs = record.clockDifference.map { Double($0.wholeMicroseconds) / 1000 }
        }
    }
}
