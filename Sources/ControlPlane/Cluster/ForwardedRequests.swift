import Cluster
import GatewayCore
import HTTPTypes
import HummingbirdCore
import Logging

/// Answers requests that other nodes forward. The sending node has authenticated the caller; all else is checked as for
/// requests of clients.
struct ForwardedRequests: Sendable {
    private static let busy = ControlProblem(
        503, "node-busy", "The node runs as many requests of other nodes as it allows; try again soon."
    ).retryable(after: 1)
    private static let malformed = ControlProblem(
        400, "malformed-request", "The node that forwards the request sent something else; it may have another version."
    )

    private let responder: ControlResponder
    private let limits: GatewayCluster.Limits
    private let running: ConcurrencyLimit
    /// Those that wait for data of a connection. They take no places of the others.
    private let waiting: ConcurrencyLimit

    init(_ responder: ControlResponder, limits: GatewayCluster.Limits) {
        self.responder = responder
        self.limits = limits
        self.running = ConcurrencyLimit(limits.servedRequests)
        self.waiting = ConcurrencyLimit(limits.servedReceives)
    }

    /// - Parameter node: the node that forwards the request.
    /// - Returns: an answer within the size that nodes exchange.
    func answer(_ bytes: [UInt8], from node: String) async -> [UInt8] {
        guard let forwarded = NodeRequest(bytes), let request = forwarded.request else {
            return await Self.encoded(Self.malformed.response)
        }
        let caller = Caller(name: forwarded.caller, scopes: forwarded.knownScopes)
        let places = self.responder.waitsForData(request) ? self.waiting : self.running
        let response = await places.run {
            await ConnectionPeer.$current.withValue(ConnectionPeer(address: "node:\(node)")) {
                await self.responder.respond(to: request, by: caller, from: node)
            }
        }
        return await self.bounded(await Self.encoded(response ?? Self.busy.response))
    }

    private func bounded(_ answer: [UInt8]) async -> [UInt8] {
        guard answer.count <= self.limits.messageSize else {
            return await Self.encoded(
                ControlProblem(
                    502, "node-answer-too-large",
                    "The answer is longer than the \(self.limits.messageSize) bytes that nodes exchange; ask for less at a time."
                ).response)
        }
        return answer
    }

    private static func encoded(_ response: Response) async -> [UInt8] {
        guard let buffered = try? await BufferedResponse(response) else { return [] }
        return NodeReply(buffered).encoded
    }
}

extension ControlResponder {
    /// - Parameters:
    ///   - caller: authenticated by the node that forwards the request.
    ///   - node: that node.
    fileprivate func respond(to request: Request, by caller: Caller, from node: String) async -> Response {
        do {
            return try await self.answer(request, by: caller, from: node)
        } catch let problem as ControlProblem {
            return problem.response
        } catch is CancellationError {
            return ControlProblem(503, "cancelled", "The request was cancelled.").retryable().response
        } catch {
            self.logger.error("an operation failed", metadata: ["error": "\(error)"])
            return ControlProblem.internalError.response
        }
    }

    /// Whether the request waits for data of a connection.
    fileprivate func waitsForData(_ request: Request) -> Bool {
        let path = (request.head.path ?? "/").prefix { $0 != "?" }
        guard case .found(let operation, _) = self.table.find(request.method, path), case .receive = operation.reach
        else { return false }
        return true
    }

    private func answer(_ request: Request, by caller: Caller, from node: String) async throws -> Response {
        let target = request.head.path ?? "/"
        let mark = target.firstIndex(of: "?") ?? target.endIndex
        guard case .found(let operation, let parameters) = self.table.find(request.method, target[..<mark]),
            operation.reach.isForwarded
        else { throw ControlProblem.notForwarded }
        try self.access.current.authorizer.authorize(caller, for: operation)
        let query = mark == target.endIndex ? nil : String(target[target.index(after: mark)...])
        return try await self.run(
            operation, request, nil, parameters: parameters, query: query, caller: caller, forwardedBy: node)
    }
}

extension ControlContext {
    /// Answers the requests of other nodes from now on.
    func serveNodes(_ responder: ControlResponder) {
        guard let cluster = self.cluster else { return }
        let requests = ForwardedRequests(responder, limits: cluster.limits)
        cluster.serve(.request) { await requests.answer($1, from: $0) }
        guard let log = self.gateway.eventLog else { return }
        let events = NodeEvents(log: log, node: cluster.nodeName, instance: cluster.instance)
        let waiting = ConcurrencyLimit(cluster.limits.servedEventWaits)
        cluster.serve(.events) { await events.answer($1, waiting) }
    }

    /// The gateway stays a node, whose bans and mutes are those of the others.
    func stopServingNodes() {
        self.cluster?.stopServing(.request)
        self.cluster?.stopServing(.events)
    }
}
