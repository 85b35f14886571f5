import ControlAPI
import GatewayCore
import HummingbirdCore
import Rooms

/// Answers of the nodes to one request.
struct NodeAnswers: Sendable {
    let own: String
    /// Whether the request did not name nodes.
    let areOfAllNodes: Bool
    /// In the order of the names.
    private(set) var replies: [(node: String, reply: NodeReply)] = []
    /// Names of nodes that did not answer.
    private(set) var unreachable: [String] = []
    /// Why the first of these did not answer.
    private(set) var failure: ControlProblem?
    /// An answer that the resource does not exist.
    private(set) var missing: NodeReply?
    /// The first answer that a node refuses the request with: its caller's mistake, or the node's present state.
    private(set) var refusal: NodeReply?

    init(own: String, areOfAllNodes: Bool = false) {
        self.own = own
        self.areOfAllNodes = areOfAllNodes
    }

    mutating func add(_ node: String, _ reply: NodeReply) {
        switch reply.status {
        case 200...299: self.replies.append((node, reply))
        case 404: self.missing = self.missing ?? reply
        default:
            self.unreachable.append(node)
            if (400...499).contains(reply.status) { self.refusal = self.refusal ?? reply }
            self.failure = self.failure ?? ControlProblem(502, "node-failed", "The node \(node.prefix(64)) failed.")
        }
        self.replies.sort { $0.node < $1.node }
    }

    /// - Throws: `ControlProblem` for a node that does not exist.
    mutating func add(_ outcome: NodeCaller.Outcome) throws(ControlProblem) {
        switch outcome.result {
        case .success(let reply): self.add(outcome.node, reply)
        case .failure(let problem):
            self.unreachable.append(outcome.node)
            self.failure = self.failure ?? problem
        }
    }

    func decoded<Model: Decodable>(_ type: Model.Type) -> [(node: String, model: Model)] {
        self.replies.compactMap { node, reply in reply.decoded(type).map { (node, $0) } }
    }

    /// The response if every node refused the request or did not answer; `nil` if at least one performed it.
    /// - Throws: why the first node did not answer.
    func responseOfNone() throws(ControlProblem) -> Response? {
        guard self.replies.isEmpty else { return nil }
        if let missing, self.unreachable.isEmpty { return missing.response }
        if let refusal { return refusal.response }
        if let failure { throw failure }
        return nil
    }

    /// `nil` if all nodes answered.
    var silent: [String]? { self.unreachable.isEmpty ? nil : self.unreachable.sorted() }
}

extension Sequence<Int> {
    /// The sum of counts that nodes report, of which one may be wrong: negative ones are left out, and it ends at `Int.max`.
    package func sumOfCounts() -> Int {
        self.reduce(0) { sum, count in
            let (next, isTooLarge) = sum.addingReportingOverflow(Swift.max(0, count))
            return isTooLarge ? .max : next
        }
    }
}

/// Merges the answers of several nodes into one.
struct NodeMerge: Sendable {
    /// Whether only the node that gets the request acts, unless the parameter `node` names others.
    var isOwnByDefault = false
    private let merge: @Sendable (NodeAnswers, ControlContext) async throws -> Response

    private init(_ merge: @escaping @Sendable (NodeAnswers) throws -> Response) {
        self.merge = { answers, _ in try merge(answers) }
    }

    private init(asking merge: @escaping @Sendable (NodeAnswers, ControlContext) async throws -> Response) {
        self.merge = merge
    }

    /// - Throws: `ControlProblem` if no node has the resource, or none answered.
    func response(_ answers: NodeAnswers, _ context: ControlContext) async throws -> Response {
        if let response = try answers.responseOfNone() { return response }
        return try await self.merge(answers, context)
    }

    /// Numbers of selected and notified connections.
    static let counts = Self { answers in
        .json(
            BulkAnswer {
                let parts = answers.decoded(BulkAnswer.self)
                $0.matched = parts.map(\.model.matched).sumOfCounts()
                $0.notified = parts.map(\.model.notified).sumOfCounts()
                $0.unreachable = answers.silent
            })
    }.ownByDefault

    private var ownByDefault: NodeMerge {
        var merge = self
        merge.isOwnByDefault = true
        return merge
    }

    static let clients = Self { answers in
        .json(
            ClientCount {
                $0.clients = answers.decoded(ClientCount.self).map(\.model.clients).sumOfCounts()
                $0.unreachable = answers.silent
            })
    }

    static let drains = Self { answers in
        .json(answers.decoded([Drain].self).flatMap(\.model))
    }

    static let room = Self(asking: { answers, context in
        let rooms = answers.decoded(Room.self)
        guard var room = Room(merging: rooms.map(\.model)) else { throw ControlProblem.internalError }
        room.nodes = rooms.map { node, room in
            RoomNode {
                $0.node = node
                $0.members = room.members
            }
        }
        room.unreachable = answers.silent
        if answers.areOfAllNodes, let counts = await context.presenceCounts(of: room.name) {
            (room.clients, room.users) = (counts.clients, counts.users)
        }
        return .json(room)
    })

    /// Connections in one response.
    private static let connectionLimit = 1000

    static let user = Self { answers in
        let users = answers.decoded(User.self)
        let restrictions = users.first { $0.node == answers.own } ?? users.first
        return .json(
            User {
                $0.id = users.first?.model.id ?? ""
                $0.connectionCount = users.map(\.model.connectionCount).sumOfCounts()
                $0.connections = Array(users.flatMap(\.model.connections).prefix(Self.connectionLimit))
                $0.restrictions = restrictions?.model.restrictions ?? []
                $0.unreachable = answers.silent
            })
    }
}

extension ControlContext {
    /// How many clients and users Redis lists in the room.
    /// - Returns: `nil` if the room's policy keeps no presence, or Redis does not answer in time.
    fileprivate func presenceCounts(of room: String) async -> RoomPresenceCounts? {
        guard let cluster, self.hub.isShared, self.hub.policy(of: room)?.hasPresence == true else { return nil }
        let rooms = self.gateway.rooms
        return await Waiting.forResult(within: cluster.limits.lookupTimeout) {
            try? await rooms.presenceCounts(of: room)
        } ?? nil
    }
}
