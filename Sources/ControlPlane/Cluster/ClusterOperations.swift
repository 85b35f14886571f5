import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import NIOCore

/// How an operation reaches the nodes of a cluster.
enum NodeReach: Sendable {
    /// Acts on the node that gets the request.
    case own
    /// Acts on one node: that of the id (`17@b`), or else of the parameter `node`, or else the one that gets the request.
    case one
    /// As `one`. It takes what it waits for: it is forwarded in turns, and ends with the client's connection.
    case receive
    /// As `one`, but is not forwarded: it lasts, or takes the connection over.
    case stream
    /// Acts on all nodes, or those of the parameter `node`, and merges their answers.
    case all(NodeMerge)
    /// Acts on all nodes, or those of the parameter `node`; the operation asks them itself.
    case list
    /// As `list`, for an operation that itself is not forwarded.
    case follow

    /// Whether nodes accept it from others.
    var isForwarded: Bool {
        switch self {
        case .own, .stream, .follow: false
        case .one, .receive, .all, .list: true
        }
    }
}

/// Makes operations reach the other nodes of a cluster. Without a cluster they act as they do on one gateway.
struct ClusterOperations: Sendable {
    private static let reaches: [String: NodeReach] = [
        "listConnections": .list, "openConnection": .one, "closeConnections": .all(.counts),
        "getConnection": .one, "changeConnection": .one, "closeConnection": .one, "send": .one, "receive": .receive,
        "ping": .one, "startSecureConnection": .one, "closeRead": .one, "closeWrite": .one, "suspend": .one,
        "resume": .one, "attach": .stream, "tap": .stream,
        "listDrains": .all(.drains), "startDrain": .one, "getDrain": .one, "cancelDrain": .one, "stopDrain": .one,
        "pauseDrain": .one, "resumeDrain": .one,
        "listRooms": .list, "getRoom": .all(.room), "listRoomMembers": .list, "kickRoomMembers": .all(.clients),
        "disconnectRoomMembers": .all(.clients),
        "listUsers": .list, "getUser": .all(.user), "disconnectUser": .all(.clients), "sendToUser": .all(.clients),
        "followEvents": .follow,
    ]
    private static let oneNode = JSONValue.text(
        "The node of a cluster that acts. Default: that of the id, else the one that gets the request.", example: "b")
    private static let severalNodes = JSONValue.text(
        "Names of nodes of a cluster, separated by commas. Default: all.", example: "a,b")

    let context: ControlContext

    func spanning(_ operation: Operation) -> Operation {
        guard let reach = Self.reaches[operation.name] else { return operation }
        var spanning = Operation(
            operation.name, operation.method, operation.template, operation.scope,
            Self.document(operation.document, reach), bodyLimit: operation.bodyLimit,
            isLongRunning: operation.isLongRunning
        ) { try await self.perform(operation, reach, $0) }
        spanning.reach = reach
        return spanning
    }

    private static func document(_ document: OperationDocument, _ reach: NodeReach) -> OperationDocument {
        let node =
            switch reach {
            case .own, .one, .receive, .stream: Self.oneNode
            case .all, .list, .follow: Self.severalNodes
            }
        let problems =
            switch reach {
            case .own, .stream, .follow: [404]
            case .one, .receive, .all, .list: [404, 502, 503, 504]
            }
        return OperationDocument(
            document.summary, parameters: document.parameters.merging(["node": node]) { first, _ in first },
            headers: document.headers, body: document.body, isBodyRequired: document.isBodyRequired,
            responses: document.responses, problems: document.problems + problems)
    }

    // MARK: Performing

    private func perform(_ operation: Operation, _ reach: NodeReach, _ call: ControlCall) async throws -> Response {
        guard let cluster = self.context.cluster else {
            if let node = try call.query.nonEmptyList("node").first { throw ControlProblem.unknownNode(node) }
            return try await operation.handler(call)
        }
        let nodes = NodeCaller(cluster: cluster)
        switch reach {
        case .own: return try await operation.handler(call)
        case .one, .receive, .stream: return try await self.performOnOne(operation, call, nodes, reach)
        case .all(let merge): return try await self.performOnAll(operation, call, nodes, merge)
        case .list, .follow: return try await operation.handler(call)
        }
    }

    /// The node that an id names, and the id there.
    static func parts(of id: String) -> (id: String, node: String?) {
        guard let mark = id.firstIndex(of: "@") else { return (id, nil) }
        return (String(id[..<mark]), String(id[id.index(after: mark)...]))
    }

    private func performOnOne(
        _ operation: Operation, _ call: ControlCall, _ nodes: NodeCaller, _ reach: NodeReach
    ) async throws -> Response {
        var call = call
        let wanted = try call.query.value("node")
        let parts = call.parameters["id"].map(Self.parts)
        if let wanted, let named = parts?.node, wanted != named {
            throw ControlProblem.invalid(
                parameter: "node", "The id is of the node \(named.prefix(64)); leave node out.")
        }
        let node = parts?.node ?? wanted ?? nodes.own
        guard node != nodes.own else {
            if let parts { call.parameters["id"] = parts.id }
            return try await operation.handler(call)
        }
        // A request is forwarded once, so that nodes with different views cannot pass it in a circle.
        guard reach.isForwarded, call.forwardedBy == nil else { throw ControlProblem.otherNode(node) }
        if case .receive = reach { return try await ForwardedReceive(call, nodes).response(of: node) }
        return try await self.forward(call, to: node, nodes)
    }

    private func forward(_ call: ControlCall, to node: String, _ nodes: NodeCaller) async throws -> Response {
        var request = NodeRequest(call)
        if call.operation.method != .get { request.body = Array(try await call.body().readableBytesView) }
        var timeout =
            call.operation.method == .get ? nodes.cluster.limits.gatherTimeout : nodes.cluster.limits.requestTimeout
        if call.operation.isLongRunning {
            // This node runs it as an operation, if the client does not wait.
            request.fields["prefer"] = nil
            call.runningOperation?.accept()
        } else if let seconds = call.waitPreference() {
            timeout += .seconds(seconds)
        }
        return try await nodes.send(request, to: node, timeout: timeout).response
    }

    // MARK: Several nodes

    /// The nodes of the parameter `node`, or all, in the order of their names.
    /// - Throws: `ControlProblem` 404 for a node that is not in the cluster.
    static func selected(_ query: Query, _ nodes: NodeCaller) async throws(ControlProblem) -> [String] {
        let wanted = try query.nonEmptyList("node")
        // Its own name is known while the bus is away.
        if wanted == [nodes.own] { return wanted }
        let all = await nodes.nodeNames()
        guard !wanted.isEmpty else { return all }
        if let unknown = wanted.first(where: { !all.contains($0) }) { throw .unknownNode(unknown) }
        return Set(wanted).sorted()
    }

    private func performOnAll(
        _ operation: Operation, _ call: ControlCall, _ nodes: NodeCaller, _ merge: NodeMerge
    ) async throws -> Response {
        guard call.forwardedBy == nil else { return try await operation.handler(call) }
        var call = call
        let isSelective = !call.query.values("node").isEmpty
        let selected = !isSelective && merge.isOwnByDefault ? [nodes.own] : try await Self.selected(call.query, nodes)
        var answers = NodeAnswers(own: nodes.own, areOfAllNodes: !isSelective)
        var body: [UInt8] = []
        if call.operation.method != .get {
            let buffer = try await call.body()
            body = Array(buffer.readableBytesView)
            call.request.body = RequestBody(buffer: buffer)
        }
        if selected.contains(nodes.own) {
            // Refuses an invalid request before others get it.
            answers.add(nodes.own, try await Self.reply { [call] in try await operation.handler(call) })
        }
        let request = NodeRequest(call)
        let isRead = call.operation.method == .get
        let others = selected.filter { $0 != nodes.own }
        let outcomes = await nodes.gather(
            from: others, timeout: isRead ? nodes.cluster.limits.gatherTimeout : nodes.cluster.limits.requestTimeout
        ) { [body] _ in
            var request = request
            request.body = body
            return request
        }
        for outcome in outcomes { try answers.add(outcome) }
        return try await merge.response(answers, self.context)
    }

    /// - Throws: `ControlProblem` unless it is about something that other nodes may have.
    private static func reply(_ work: () async throws -> Response) async throws -> NodeReply {
        do {
            return NodeReply(try await BufferedResponse(try await work()))
        } catch let problem as ControlProblem where problem.status == 404 {
            return NodeReply(try await BufferedResponse(problem.response))
        }
    }
}

extension ControlProblem {
    static let notForwarded = ControlProblem(
        421, "not-forwarded", "Nodes do not forward this request; send it to the control plane of the node itself.")
}

extension ControlContext {
    /// An id as other nodes know it: `17@b`. Without a cluster, `17`.
    func qualified(_ id: String) -> String { self.node.map { "\(id)@\($0)" } ?? id }
}

extension ControlContext {
    func connectionWriter(fields: Set<String>? = nil) -> ConnectionWriter {
        ConnectionWriter(anchor: self.anchor, node: self.node, fields: fields)
    }
}
