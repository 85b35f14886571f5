import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import SessionTasks

/// Receives from a connection of another node, for a client of this one.
///
/// The request is sent in turns, so that the other node does not wait for long after this one is gone. When the client
/// disconnects, the other node's wait ends: what arrives later goes to the next receiver.
struct ForwardedReceive: Sendable {
    private let call: ControlCall
    private let nodes: NodeCaller

    init(_ call: ControlCall, _ nodes: NodeCaller) {
        self.call = call
        self.nodes = nodes
    }

    func response(of node: String) async throws -> Response {
        let (request, timeout) = try await ReceiveRequest.read(self.call)
        let deadline = ContinuousClock.now.advanced(by: timeout)
        let longest = self.nodes.cluster.limits.receiveTurn
        var turn = min(timeout, longest)
        while true {
            let forwarded = self.request(request, waiting: turn, isOnlyTurn: turn == timeout)
            // The wait is the other node's; the rest is for the round trip.
            let limit = turn + self.nodes.cluster.limits.requestTimeout
            let reply = try await self.call.cancellingOnDisconnect {
                try await self.nodes.send(forwarded, to: node, as: .receive, timeout: limit)
            }
            let rest = ContinuousClock.now.duration(to: deadline)
            guard reply.status == HTTPResponse.Status.noContent.code, turn == longest, rest > .zero else {
                return reply.response
            }
            turn = min(rest, longest)
        }
    }

    /// - Parameter isOnlyTurn: whether no further one follows, so that the request can be known by its key.
    private func request(_ request: ReceiveRequest, waiting turn: Duration, isOnlyTurn: Bool) -> NodeRequest {
        let query = Query(pairs: self.call.query.pairs.filter { $0.name == "node" })
        let path = (self.call.request.head.path ?? "/").prefix { $0 != "?" }
        var forwarded = NodeRequest(self.call, target: query.target(of: String(path)))
        forwarded.fields[HTTPField.Name.prefer.canonicalName] = nil
        forwarded.fields[HTTPField.Name.contentType.canonicalName] = "application/json"
        if !isOnlyTurn { forwarded.fields[HTTPField.Name.idempotencyKey.canonicalName] = nil }
        var request = request
        request.timeoutMs = turn / .milliseconds(1)
        forwarded.body = JSONBody.encode(request)
        return forwarded
    }
}

extension ReceiveRequest {
    /// The request of a call, completed by its query, and how long it waits.
    /// - Throws: `ControlProblem` for an invalid body or query.
    static func read(_ call: ControlCall) async throws -> (request: ReceiveRequest, timeout: Duration) {
        var request = try await call.decode(ReceiveRequest.self)
        let limit = 1 << 20
        if request.minimumBytes == nil { request.minimumBytes = try call.query.integer("minimumBytes", in: 0...limit) }
        if request.maximumBytes == nil { request.maximumBytes = try call.query.integer("maximumBytes", in: 1...limit) }
        if request.timeoutMs == nil {
            request.timeoutMs = try call.query.integer("timeoutMs", in: 0...600_000).map { Double($0) }
        }
        let timeout =
            OpenRequestParser.duration(request.timeoutMs)
            ?? call.waitPreference(limit: 600).map { .seconds($0) } ?? .seconds(30)
        return (request, timeout)
    }
}

/// Limits of an answer to another node.
struct AnswerBounds: Sendable {
    /// Bytes of the answer besides its payload.
    private static let overhead = 256

    /// Bytes of the whole body.
    let limit: Int

    /// - Returns: `nil` for a call of a client, whose answer is not bounded.
    init?(_ call: ControlCall, _ cluster: GatewayCluster?) {
        guard call.forwardedBy != nil, let cluster else { return nil }
        self.limit = NodeCaller.bodyLimit(cluster.limits)
    }

    /// Longest chunk of a stream, which is base64 in the answer.
    var chunkLimit: Int { max(0, self.limit - Self.overhead) / 4 * 3 }

    func accepts(_ message: WebSocketTask.Message) -> Bool {
        switch message {
        case .data(let bytes): return bytes.count <= self.chunkLimit
        case .string(let text):
            // An escape is `\u` and four digits at most.
            let size = text.utf8.reduce(Self.overhead) { size, byte in
                size + (byte < 0x20 || byte == 0x7F ? 6 : byte == 0x22 || byte == 0x2F || byte == 0x5C ? 2 : 1)
            }
            return size <= self.limit
        }
    }

    /// The message stays with its connection.
    var messageTooLarge: ControlProblem {
        ControlProblem(
            502, "node-answer-too-large",
            "The next message is longer than the \(self.limit) bytes that nodes exchange, and was not taken; receive it at the control plane of its own node."
        )
    }

    /// Nothing was taken.
    var chunkTooLarge: ControlProblem {
        ControlProblem(
            413, "answer-too-large",
            "Nodes exchange at most \(self.chunkLimit) bytes of a stream at a time; lower minimumBytes, or receive at the control plane of the connection's own node."
        )
    }
}
