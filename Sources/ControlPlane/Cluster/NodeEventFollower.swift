import Cluster
import ControlAPI
import GatewayCore
import HTTPTypes
import HummingbirdCore
import SessionTasks
import Synchronization
import WebSocketProtocol
import WireText

/// A position in the events of one gateway, `5b1c8fa0.17`, or of several nodes, `17@a/5b1c8fa0,5@b/90e1c20d`. The process,
/// before `.` or after `/`, may be missing.
package struct EventPosition: Sendable, Equatable {
    /// The last event received from a node.
    package struct Last: Sendable, Equatable {
        /// Characters of the process in the text.
        private static let instanceLength = 8

        package var number: UInt64
        /// Identifies the process that counted it, or begins like its identifier; empty if it is not known.
        package var instance: String

        package init(_ number: UInt64, _ instance: String = "") {
            (self.number, self.instance) = (number, instance)
        }

        /// - Returns: `nil` for text that is neither `5b1c8fa0.17` nor a number.
        fileprivate init?(_ text: String) {
            let mark = text.firstIndex(of: ".")
            let instance = mark.map { text[..<$0] }
            guard let number = UInt64(mark.map { text[text.index(after: $0)...] } ?? text[...]),
                instance?.isEmpty != true, instance?.allSatisfy({ "0123456789abcdef".contains($0) }) != false
            else { return nil }
            self.init(number, String(instance ?? ""))
        }

        /// Whether the process counted it. A number alone may be of any process; 0 is before the first event of each.
        package func belongs(to instance: String) -> Bool {
            self.instance.isEmpty ? self.number == 0 : instance.hasPrefix(self.instance)
        }

        /// The position on a gateway without other nodes.
        package var text: String { "\(self.shortInstance).\(self.number)" }

        fileprivate var shortInstance: Substring { self.instance.prefix(Self.instanceLength) }
    }

    /// By node.
    package var nodes: [String: Last] = [:]
    /// The number for nodes that are not named.
    package var others: UInt64?

    package init() {}

    /// - Returns: `nil` for other text.
    package init?(_ text: String, own: String) {
        // Nodes that a position does not name have joined since: all their events are new.
        if text == "0" || text.contains("@") || text.contains(".") { self.others = 0 }
        guard text != "0" else { return }
        guard text.contains("@") else {
            guard let last = Last(text) else { return nil }
            self.nodes[own] = last
            return
        }
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            let (number, place) = ClusterOperations.parts(of: String(part))
            guard let number = UInt64(number), let place else { return nil }
            let words = place.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let node = words.first, !node.isEmpty, words.last?.isEmpty == false else { return nil }
            self.nodes[String(node)] = Last(number, words.count > 1 ? String(words[1]) : "")
        }
    }

    package var text: String {
        self.nodes.sorted { $0.key < $1.key }.map { node, last in
            "\(last.number)@\(node)" + (last.instance.isEmpty ? "" : "/\(last.shortInstance)")
        }.joined(separator: ",")
    }

    /// The last event that a gateway without other nodes had sent; `nil` if the client named none.
    func withoutNodes(own: String) -> Last? {
        // The gateway had other nodes before: no number is of this process.
        let former = self.nodes.values.map(\.number).max().map { Last($0) }
        return self.nodes[own] ?? former ?? self.others.map { Last($0) }
    }
}

/// Follows the events of several nodes for one client.
///
/// Each node is asked for its next events once the last ones are written: at most one batch of each node waits. A client that
/// is too slow misses events, which its next batch reports as a gap. Where too many wait already, on this node or the other
/// one, the node is asked again and again.
struct NodeEventFollower: Sendable {
    enum Step: Sendable {
        /// The wire models, each with the position after it as its ID.
        case events([EventStream.Item])
        case heartbeat
    }

    private enum Outcome: Sendable {
        /// `nil` if the node did not answer.
        case batch(String, EventBatch?)
        case nodes([String])
        case heartbeat
        case over
    }

    let nodes: NodeCaller
    let events: NodeEvents
    let query: Query
    let heartbeat: Duration
    let bounds: StreamBounds
    /// The control plane stops.
    let stopping: OneTimeEvent
    private var position: EventPosition
    private var followed: Set<String> = []
    /// Nodes that the cluster had last, among those that the client wants.
    private var present: Set<String> = []
    private var count = 0
    private var lastStep = ContinuousClock.now

    init(
        _ call: ControlCall, on nodes: NodeCaller, _ events: NodeEvents, position: EventPosition,
        heartbeat: Duration, stopping: OneTimeEvent
    ) throws(ControlProblem) {
        self.nodes = nodes
        self.events = events
        self.query = call.query
        self.position = position
        self.heartbeat = heartbeat
        self.bounds = try StreamBounds(call.query)
        self.stopping = stopping
        for id in call.query.list("connection") where ConnectionKey(ClusterOperations.parts(of: id).id) == nil {
            throw ControlProblem.invalid(parameter: "connection", "connection must be the id of a connection.")
        }
        _ = try EventFilter(Query(pairs: call.query.pairs.filter { $0.name != "connection" }))
    }

    // MARK: Nodes

    private func selected() async throws(ControlProblem) -> [String] {
        try await ClusterOperations.selected(self.query, self.nodes).filter { self.filters(of: $0) != nil }
    }

    /// The nodes to follow at the moment. One that the client named may be gone, and return.
    private func presentNodes() async -> [String] {
        let wanted = self.query.list("node")
        return await self.nodes.nodeNames().filter { node in
            (wanted.isEmpty || wanted.contains(node)) && self.filters(of: node) != nil
        }
    }

    /// The filters for a node; `nil` if they name connections of other nodes only.
    private func filters(of node: String) -> Query? {
        var pairs = self.query.pairs.filter { EventFilter.parameters[$0.name] != nil && $0.name != "connection" }
        let connections = self.query.list("connection").map(ClusterOperations.parts)
        let ids = connections.filter { ($0.node ?? self.nodes.own) == node }.map(\.id)
        guard connections.isEmpty || !ids.isEmpty else { return nil }
        pairs += ids.map { (name: "connection", value: $0) }
        return Query(pairs: pairs)
    }

    /// Finds where the events of nodes without a position end, so that events from now on are not missed.
    mutating func begin() async throws(ControlProblem) {
        let selected = try await self.selected()
        if let others = self.position.others {
            for node in selected where self.position.nodes[node] == nil { self.position.nodes[node] = .init(others) }
        }
        let unknown = selected.filter { self.position.nodes[$0] == nil }
        let reader = self
        let found = await withTaskGroup(of: (String, EventBatch?).self) { group in
            for node in unknown {
                group.addTask { (node, await reader.batch(of: node, EventRequest())) }
            }
            return await group.reduce(into: [String: EventBatch]()) { found, next in found[next.0] = next.1 }
        }
        for (node, batch) in found { self.position.nodes[node] = .init(batch.position, batch.instance) }
    }

    /// - Returns: `nil` if the node does not answer.
    private func batch(of node: String, _ request: EventRequest) async -> EventBatch? {
        guard let filters = self.filters(of: node) else { return nil }
        if node == self.nodes.own {
            guard let filter = try? EventFilter(filters) else { return nil }
            return await self.events.batch(request, filter)
        }
        var request = request
        request.query = String(filters.target(of: "").dropFirst())
        guard request.waitMs > 0 else { return await self.batchWithoutWait(of: node, request) }
        let cluster = self.nodes.cluster
        let timeout = cluster.limits.gatherTimeout + .milliseconds(request.waitMs)
        do throws(ClusterError) {
            return EventBatch(try await cluster.waitForEvents(of: node, request.encoded, timeout: timeout))
        } catch {
            guard error == .busy else { return nil }
            request.waitMs = 0
            var batch = await self.batchWithoutWait(of: node, request)
            batch?.isImmediate = true
            return batch
        }
    }

    private func batchWithoutWait(of node: String, _ request: EventRequest) async -> EventBatch? {
        let cluster = self.nodes.cluster
        let answer = try? await cluster.call(
            node, .events, request.encoded, timeout: cluster.limits.gatherTimeout)
        return answer.flatMap { EventBatch($0) }
    }

    // MARK: Following

    /// Writes events until the client disconnects, a bound is reached or the control plane stops.
    mutating func follow(
        until disconnect: OneTimeEvent?, _ write: (Step) async throws -> Void
    ) async throws {
        let stopping = self.stopping
        let timeLeft = self.bounds.timeLeft
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            defer { group.cancelAll() }
            for event in [stopping, disconnect].compactMap(\.self) {
                group.addTask {
                    await event.wait()
                    return .over
                }
            }
            if let timeLeft { group.addTask { await Self.after(timeLeft, .over) } }
            let heartbeat = self.heartbeat
            group.addTask { await Self.after(heartbeat, .heartbeat) }
            // One that the client named may have left since `begin`.
            let first = await self.presentNodes()
            group.addTask { .nodes(first) }
            while !self.bounds.isReached(self.count), let outcome = try await group.next() {
                if case .over = outcome { break }
                if case .heartbeat = outcome {
                    try await self.writeHeartbeat(write, &group)
                    continue
                }
                try await self.handle(outcome, write, &group)
            }
        }
        if stopping.hasOccurred { try await self.writeLastEvents(write) }
    }

    private static func after(_ pause: Duration, _ outcome: Outcome) async -> Outcome {
        try? await Task.sleep(for: pause)
        return Task.isCancelled ? .over : outcome
    }

    private mutating func writeHeartbeat(
        _ write: (Step) async throws -> Void, _ group: inout ThrowingTaskGroup<Outcome, any Error>
    ) async throws {
        let quiet = self.lastStep.duration(to: .now)
        if quiet >= self.heartbeat {
            try await write(.heartbeat)
            self.lastStep = .now
        }
        let pause = quiet >= self.heartbeat ? self.heartbeat : self.heartbeat - quiet
        group.addTask { await Self.after(pause, .heartbeat) }
    }

    private mutating func handle(
        _ outcome: Outcome, _ write: (Step) async throws -> Void,
        _ group: inout ThrowingTaskGroup<Outcome, any Error>
    ) async throws {
        switch outcome {
        case .over, .heartbeat: break
        case .nodes(let names):
            self.present = Set(names)
            for node in names where self.followed.insert(node).inserted { self.ask(node, after: .zero, &group) }
            let reader = self
            group.addTask {
                try? await Task.sleep(for: reader.nodes.cluster.limits.membershipInterval)
                return .nodes(await reader.presentNodes())
            }
        case .batch(let node, let batch?):
            // The gap after events of another process comes before all events of this one.
            let isOther = self.position.nodes[node]?.belongs(to: batch.instance) == false
            try await self.write(batch, of: node, write) { item in
                item.type == "gap" ? min(item.number, isOther ? 0 : batch.position) : item.number
            }
            if !self.bounds.isReached(self.count) {
                self.position.nodes[node] = .init(batch.position, batch.instance)
            }
            let mustPause = batch.isImmediate && batch.items.isEmpty
            self.ask(node, after: mustPause ? self.nodes.cluster.limits.eventPollInterval : .zero, &group)
        case .batch(let node, nil) where !self.present.contains(node):
            // Its position remains, for when it returns.
            self.followed.remove(node)
        case .batch(let node, nil):
            self.ask(node, after: self.nodes.cluster.limits.gatherTimeout, &group)
        }
    }

    /// Writes the events of a batch, as many as the client still wants.
    /// - Parameter number: the event's number as the client's position.
    private mutating func write(
        _ batch: EventBatch, of node: String, _ write: (Step) async throws -> Void,
        _ number: (EventBatch.Item) -> UInt64 = { $0.number }
    ) async throws {
        var events: [EventStream.Item] = []
        for item in batch.items where !self.bounds.isReached(self.count) {
            self.position.nodes[node] = .init(number(item), batch.instance)
            let position = self.position.text
            events.append(EventStream.Item(data: item.text(at: position), id: position, type: item.type))
            self.count += 1
        }
        guard !events.isEmpty else { return }
        try await write(.events(events))
        self.lastStep = .now
    }

    /// - Parameter pause: before a node is asked again that did not answer, or did not wait.
    private func ask(
        _ node: String, after pause: Duration, _ group: inout ThrowingTaskGroup<Outcome, any Error>
    ) {
        var request = EventRequest()
        // All events of a node that joins later are new.
        request.position = self.position.nodes[node]?.number ?? 0
        request.instance = self.position.nodes[node]?.instance ?? ""
        request.waitMs = Int(self.nodes.cluster.limits.eventWait.wholeMicroseconds / 1000)
        let reader = self
        group.addTask { [request] in
            if pause > .zero { try? await Task.sleep(for: pause) }
            return .batch(node, await reader.batch(of: node, request))
        }
    }

    /// Events of this node up to its end, which say why it stops.
    private mutating func writeLastEvents(_ write: (Step) async throws -> Void) async throws {
        let node = self.nodes.own
        guard self.followed.contains(node), !self.bounds.isReached(self.count) else { return }
        var request = EventRequest()
        request.position = self.position.nodes[node]?.number
        request.instance = self.position.nodes[node]?.instance ?? ""
        guard request.position != nil, let batch = await self.batch(of: node, request) else { return }
        try await self.write(batch, of: node, write)
    }
}

extension EventsResource {
    /// Follows the events of several nodes.
    func follow(_ call: ControlCall, _ log: EventLog, on nodes: NodeCaller, heartbeat: Duration) async throws
        -> Response
    {
        let events = NodeEvents(log: log, node: nodes.own, instance: nodes.cluster.instance)
        var follower = try NodeEventFollower(
            call, on: nodes, events, position: try Self.position(call, own: nodes.own), heartbeat: heartbeat,
            stopping: self.context.stopping)
        try await follower.begin()
        let ready = follower
        if call.wantsWebSocket {
            return try await ControlUpgrade(call: call).webSocket(on: self.context.loop) { socket in
                var follower = ready
                try? await follower.follow(until: nil) { step in
                    switch step {
                    case .events(let events):
                        for event in events {
                            try await socket.send(.string(String(decoding: event.data, as: UTF8.self)))
                        }
                    case .heartbeat: try await socket.sendPing()
                    }
                }
                socket.cancel(with: .goingAway)
            }
        }
        return try await EventStream.response(call) { writer, disconnect in
            var follower = ready
            try await follower.follow(until: disconnect) { step in
                switch step {
                case .events(let events): try await writer.writeEvents(events) { $0 }
                case .heartbeat: try await writer.writeComment()
                }
            }
        }
    }

    /// `Last-Event-ID`, which a reconnecting client sends, or else `after`.
    static func position(_ call: ControlCall, own: String) throws(ControlProblem) -> EventPosition {
        if let text = call.request.headers[.lastEventID], !text.isEmpty {
            guard let position = EventPosition(text, own: own) else {
                throw ControlProblem(400, "invalid-header", "Last-Event-ID must be the id of an event.")
            }
            return position
        }
        guard let text = try call.query.value("after") else { return EventPosition() }
        guard let position = EventPosition(text, own: own) else {
            throw ControlProblem.invalid(parameter: "after", "after must be 0 or the position of an event.")
        }
        return position
    }
}
