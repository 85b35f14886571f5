import Cluster
import ControlAPI
import FoundationEssentials
import GatewayConfiguration
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore

/// Asks other nodes of the cluster for requests of the REST interface.
struct NodeCaller: Sendable {
    /// Nodes asked at the same time.
    private static let parallelCalls = 32
    /// Space for the head of a message beside its body, in bytes.
    static let headSize = 32 << 10

    /// Longest body of a request to another node, and of its answer, in bytes.
    static func bodyLimit(_ limits: GatewayCluster.Limits) -> Int { max(0, limits.messageSize - Self.headSize) }

    /// Answer of one node.
    struct Outcome: Sendable {
        let node: String
        let result: Result<NodeReply, ControlProblem>
    }

    let cluster: GatewayCluster

    var own: String { self.cluster.nodeName }

    /// Names of the nodes, in order; where Redis does not name them in time, those that it named last.
    func nodeNames() async -> [String] {
        let cluster = self.cluster
        let names = await Waiting.forResult(within: cluster.limits.lookupTimeout) { await cluster.nodeNames() }
        return names ?? cluster.lastNodeNames
    }

    // MARK: One node

    /// - Parameter kind: chooses the limit of unanswered calls.
    func send(
        _ request: NodeRequest, to node: String, as kind: GatewayCluster.CallKind = .request, timeout: Duration
    ) async throws(ControlProblem) -> NodeReply {
        let limit = Self.bodyLimit(self.cluster.limits)
        guard request.body.count <= limit else {
            throw ControlProblem(
                413, "body-too-large",
                "A request to another node has at most \(limit) bytes; send it to the control plane of \(node).")
        }
        do {
            let bytes = try await self.cluster.call(node, .request, request.encoded, as: kind, timeout: timeout)
            guard let reply = NodeReply(bytes) else {
                throw ControlProblem(
                    502, "node-answer-invalid",
                    "The node \(node) gave no valid answer; it may have no control plane, or another version.")
            }
            return reply
        } catch let problem as ControlProblem {
            throw problem
        } catch let error as ClusterError {
            throw ControlProblem(error, timeout: timeout)
        } catch {
            throw .internalError
        }
    }

    // MARK: Several nodes

    /// Sends a request to other nodes at the same time. Never takes much longer than the timeout.
    /// - Returns: in the order of `nodes`.
    func gather(
        from nodes: [String], timeout: Duration, _ request: @escaping @Sendable (String) -> NodeRequest
    ) async -> [Outcome] {
        let deadline = ContinuousClock.now.advanced(by: timeout)
        let ask: @Sendable (String) async -> Outcome = { node in
            let rest = max(.milliseconds(1), ContinuousClock.now.duration(to: deadline))
            do throws(ControlProblem) {
                let reply = try await self.send(request(node), to: node, timeout: rest)
                return Outcome(node: node, result: .success(reply))
            } catch {
                return Outcome(node: node, result: .failure(error))
            }
        }
        return await withTaskGroup(of: Outcome.self) { group in
            var outcomes: [String: Outcome] = [:]
            var rest = nodes[...]
            for node in rest.prefix(Self.parallelCalls) { group.addTask { await ask(node) } }
            rest = rest.dropFirst(Self.parallelCalls)
            while let outcome = await group.next() {
                outcomes[outcome.node] = outcome
                if let node = rest.popFirst() { group.addTask { await ask(node) } }
            }
            return nodes.compactMap { outcomes[$0] }
        }
    }
}

extension NodeReply {
    /// - Returns: `nil` for a body that is not of this model.
    func decoded<Model: Decodable>(_ type: Model.Type) -> Model? {
        try? JSONDecoder().decode(type, from: Data(self.body))
    }

    /// The code of a problem document.
    var problemCode: String? { self.decoded(Problem.self)?.code }
}

extension ControlProblem {
    /// Why a node gave no answer.
    init(_ error: ClusterError, timeout: Duration) {
        switch error {
        case .away, .refused:
            self = Self(503, "cluster-away", "\(error.description); other nodes cannot be asked at the moment.")
                .retryable(after: 1)
        case .unknownNode(let name): self = .unknownNode(name)
        case .timeout(let node):
            self = Self(
                504, "node-silent",
                "The node \(node.prefix(64)) did not answer within \(DurationText(timeout)); it may have acted."
            ).retryable()
        case .tooLarge(let limit):
            self.init(502, "node-answer-too-large", "Nodes exchange at most \(limit) bytes at a time.")
        case .busy: self = Self(503, "cluster-busy", "\(error.description); try again soon.").retryable(after: 1)
        }
    }

    static func unknownNode(_ name: String) -> ControlProblem {
        ControlProblem(
            404, "unknown-node", "There is no node \(name.prefix(64)) in the cluster; GET /v1/nodes lists the nodes.")
    }

    static let noCluster = ControlProblem(
        409, "no-cluster", "This gateway is not a node of a cluster, which the configuration would name.")

    /// 421 for a request that only the node itself can answer.
    static func otherNode(_ node: String) -> ControlProblem {
        ControlProblem(
            421, "other-node", "Only the node \(node.prefix(64)) can answer this: send it to its control plane.")
    }
}
