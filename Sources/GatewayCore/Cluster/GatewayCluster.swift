import Cluster
import StreamTransport
import Synchronization

/// The gateway as one node of a cluster: asks other nodes, answers them, and keeps its bans and mutes like theirs.
package final class GatewayCluster: Sendable {
    /// Subject of a message; its first byte.
    package enum Subject: UInt8, Sendable {
        /// A request of the REST interface.
        case request = 0x72
        /// Asks for events after a position.
        case events = 0x65
        /// Commands of clients without a WebSocket, whose responses the node has.
        case commands = 0x63
        /// Asks for the bans and mutes that the node knows.
        case restrictions = 0x62
        /// Announces changed bans and mutes.
        case restricted = 0x42
    }

    /// Calls that have limits of their own: those that wait for long leave the places of the others free.
    package enum CallKind: Sendable, CaseIterable {
        /// Answered as soon as its work is done.
        case request
        /// Waits for data of a connection.
        case receive
        /// Waits for events.
        case eventWait
    }

    /// Times and limits of the conversation between nodes.
    package struct Limits: Sendable {
        /// How long a list waits for the answers of other nodes.
        package var gatherTimeout = Duration.seconds(2)
        /// How long a request of the REST interface waits for the names of the nodes, and for counts that Redis has; then it
        /// does without them.
        package var lookupTimeout = Duration.milliseconds(500)
        /// How long a request to one other node waits for its answer.
        package var requestTimeout = Duration.seconds(30)
        /// How long commands of a client without a WebSocket wait to be sent to its node, and then for the answer.
        package var commandTimeout = Duration.seconds(3)
        /// How often this node compares its bans and mutes with those of another one.
        package var comparisonInterval = Duration.seconds(30)
        /// How long a node waits for an event before it answers a follower.
        package var eventWait = Duration.seconds(5)
        /// How often a follower of events looks for nodes that joined or are gone.
        package var membershipInterval = Duration.seconds(2)
        /// How often a follower of events asks a node on which it cannot wait.
        package var eventPollInterval = Duration.seconds(1)
        /// Longest message and answer, in bytes.
        package var messageSize = 1 << 20
        /// Requests of other nodes that run at the same time, without `servedReceives`; further ones are refused.
        package var servedRequests = 64
        /// Requests of other nodes that wait for data of a connection; further ones are refused.
        package var servedReceives = 32
        /// Calls of other nodes that wait for events; further ones are answered without waiting.
        package var servedEventWaits = 64
        /// Calls of other nodes besides those above. All of these are answered at once.
        package var servedShortCalls = 96
        /// How long a request for data of a connection waits on its node, before it is sent again.
        package var receiveTurn = Duration.seconds(30)
        /// Calls to other nodes without an answer yet, without those below; further ones are refused.
        package var sentRequests = 256
        /// Requests to other nodes that wait for data of a connection; further ones are refused.
        package var sentReceives = 128
        /// Calls to other nodes that wait for events. Followers beyond them ask without waiting.
        package var sentEventWaits = 64

        package init() {}

        /// Calls of other nodes that the bus lets run at the same time.
        var servedCalls: Int {
            self.servedRequests + self.servedReceives + self.servedEventWaits + self.servedShortCalls
        }

        fileprivate func sent(_ kind: CallKind) -> Int {
            switch kind {
            case .request: self.sentRequests
            case .receive: self.sentReceives
            case .eventWait: self.sentEventWaits
            }
        }
    }

    /// - Returns: the answer; empty if there is none.
    package typealias Handler = @Sendable (_ sender: String, _ content: [UInt8]) async -> [UInt8]

    private struct State {
        var handlers: [Subject: Handler] = [:]
        /// The nodes at the time of the last answer of the bus.
        var nodes: [NodeRecord] = []
        /// Whether Redis may lack bans and mutes that this node knows, or this node some that Redis keeps.
        var mustSynchronize = true
        var isSynchronizing = false
        /// Redis was reached while a synchronization was in progress.
        var wasReached = false
        var task: Task<Void, Never>?
    }

    package let bus: any ClusterBus
    package let limits: Limits
    /// Another one each time that the gateway starts.
    package let instance: String
    let restrictions: SharedRestrictions
    private let state = Mutex(State())
    private let sentCalls: [CallKind: ConcurrencyLimit]
    private let eventWaits = SharedCalls()

    init(_ bus: any ClusterBus, limits: Limits, instance: String, rooms: RoomOperations) {
        self.bus = bus
        self.instance = instance
        self.limits = limits
        self.sentCalls = Dictionary(
            uniqueKeysWithValues: CallKind.allCases.map { ($0, ConcurrencyLimit(limits.sent($0))) })
        self.restrictions = SharedRestrictions(rooms)
        self.serve(.restrictions) { [restrictions] _, content in restrictions.answer(content) }
        self.serve(.restricted) { [restrictions] _, content in
            await restrictions.apply(content)
            return []
        }
        self.serve(.commands) { [rooms] _, content in
            // A node that stood still gets calls that were withdrawn meanwhile: their clients have got 503.
            Task.isCancelled ? [] : rooms.hub.receiveCommands(content)
        }
        bus.serve(reached: { [weak self] in self?.synchronizeSoon() }) { [weak self] message in
            await self?.answer(message) ?? []
        }
        self.startComparing()
    }

    package var nodeName: String { self.bus.nodeName }

    /// Sends commands of clients without a WebSocket to the nodes that have their responses.
    func makeCommandForwarder() -> CommandForwarder {
        CommandForwarder(node: self.nodeName, timeout: self.limits.commandTimeout) {
            [weak self] (node, content, timeout) async throws(ClusterError) in
            guard let self else { throw .away }
            return try await self.call(node, .commands, content, timeout: timeout)
        }
    }

    /// Stops comparing bans and mutes, and answers no more.
    package func stop() {
        self.state.withLock { state in
            state.task?.cancel()
            state.handlers = [:]
        }
    }

    // MARK: Asking

    /// Names of the nodes, in order; while the bus is away, those it named last. This node is always among them.
    package func nodeNames() async -> [String] {
        _ = try? await self.nodes()
        return self.lastNodeNames
    }

    /// Names of the nodes at the time of the last answer of the bus, in order. This node is always among them.
    package var lastNodeNames: [String] {
        Set(self.state.withLock { $0.nodes.map(\.name) } + [self.nodeName]).sorted()
    }

    package func nodes() async throws(ClusterError) -> [NodeRecord] {
        let nodes = try await self.bus.nodes()
        self.state.withLock { $0.nodes = nodes }
        return nodes
    }

    /// Sends a message to another node and waits for its answer.
    /// - Parameter kind: chooses the limit of unanswered calls.
    /// - Throws: `ClusterError`; `busy` at the limit of unanswered calls, `tooLarge` for a message above the limit.
    package func call(
        _ node: String, _ subject: Subject, _ content: [UInt8], as kind: CallKind = .request, timeout: Duration
    ) async throws(ClusterError) -> [UInt8] {
        guard content.count < self.limits.messageSize else { throw .tooLarge(limit: self.limits.messageSize) }
        let answer = try await self.sentCalls[kind]?.run { () async throws(ClusterError) in
            try await self.bus.call(node, [subject.rawValue] + content, timeout: timeout)
        }
        guard let answer else { throw .busy }
        return answer
    }

    /// Asks another node for events, for which it waits. Callers that ask the same at the same time share one call.
    /// - Throws: `ClusterError`; `busy` at the limit of such calls.
    package func waitForEvents(
        of node: String, _ content: [UInt8], timeout: Duration
    ) async throws(ClusterError) -> [UInt8] {
        try await self.eventWaits.call(node, content) { [weak self] () async throws(ClusterError) in
            guard let self else { throw .away }
            return try await self.call(node, .events, content, as: .eventWait, timeout: timeout)
        }
    }

    // MARK: Answering

    /// Sets what answers messages about a subject. Until then, their answers are empty.
    package func serve(_ subject: Subject, _ handler: @escaping Handler) {
        self.state.withLock { $0.handlers[subject] = handler }
    }

    /// Leaves messages about a subject without an answer from now on.
    package func stopServing(_ subject: Subject) {
        self.state.withLock { $0.handlers[subject] = nil }
    }

    private func answer(_ message: ClusterMessage) async -> [UInt8] {
        guard message.bytes.count <= self.limits.messageSize, let first = message.bytes.first,
            let subject = Subject(rawValue: first), message.isAnnouncement == (subject == .restricted),
            let handler = self.state.withLock({ $0.handlers[subject] })
        else { return [] }
        return await handler(message.sender, Array(message.bytes.dropFirst()))
    }

    // MARK: Bans and mutes

    /// Bans a user from a room or mutes it there, on all nodes.
    /// - Parameter room: `nil` is every room.
    /// - Returns: `false` if there are too many restrictions already.
    package func restrict(
        _ kind: Moderation.Kind, user: String, in room: String?, for duration: Duration
    ) async -> Bool {
        let entry = Moderation.Entry(kind: kind, user: user, room: room)
        guard let change = self.restrictions.restrict(entry, for: duration) else { return false }
        await self.announce(change)
        return true
    }

    /// - Returns: whether there was such a restriction.
    package func lift(_ kind: Moderation.Kind, user: String, in room: String?) async -> Bool {
        guard let change = self.restrictions.lift(Moderation.Entry(kind: kind, user: user, room: room)) else {
            return false
        }
        await self.announce(change)
        return true
    }

    /// Nodes that miss it get the change when they compare their restrictions.
    private func announce(_ change: RestrictionChange) async {
        async let isKept = self.restrictions.keep([change], on: self.bus)
        let content = RestrictionChange.encoded([change])
        try? await self.bus.announce([Subject.restricted.rawValue] + content)
        if await !isKept { self.state.withLock { $0.mustSynchronize = true } }
    }

    private func synchronizeSoon() {
        self.state.withLock { state in
            (state.mustSynchronize, state.wasReached) = (true, true)
        }
        Task { await self.synchronizeRestrictions() }
    }

    /// Obeys the bans and mutes that Redis keeps, and keeps there what it lacks, unless both have the same already.
    private func synchronizeRestrictions() async {
        let begins = self.state.withLock { state in
            guard state.mustSynchronize, !state.isSynchronizing else { return false }
            (state.mustSynchronize, state.isSynchronizing, state.wasReached) = (false, true, false)
            return true
        }
        guard begins else { return }
        var repeats: Bool
        repeat {
            let isComplete = await self.restrictions.synchronize(with: self.bus)
            repeats = self.state.withLock { state in
                if state.wasReached {
                    (state.mustSynchronize, state.wasReached) = (false, false)
                    return true
                }
                state.isSynchronizing = false
                if !isComplete { state.mustSynchronize = true }
                return false
            }
        } while repeats
    }

    /// Gets the bans and mutes that this node does not know from another one.
    /// - Returns: `false` if no other node answered.
    @discardableResult
    package func compareRestrictions() async -> Bool {
        let others = ((try? await self.nodes()) ?? []).map(\.name).filter { $0 != self.nodeName }
        for node in others.shuffled().prefix(3) where await self.getRestrictions(of: node) { return true }
        return false
    }

    private func getRestrictions(of node: String) async -> Bool {
        var position = 0
        while true {
            let request = self.restrictions.request(from: position)
            guard
                let answer = try? await self.call(node, .restrictions, request, timeout: self.limits.gatherTimeout),
                let next = await self.restrictions.read(answer)
            else { return false }
            // The number of pages is bounded by the number of restrictions.
            guard let next, next > position, position < Moderation.limit else { return true }
            position = next
        }
    }

    private func startComparing() {
        let interval = self.limits.comparisonInterval
        let task = Task { [weak self] in
            var isComplete = false
            var shortPause = Duration.seconds(1)
            while !Task.isCancelled {
                guard let self else { return }
                await self.synchronizeRestrictions()
                let hasAnswer = await self.compareRestrictions()
                // Another node may know what Redis does not, as one of a former version does.
                if hasAnswer, !isComplete { self.state.withLock { $0.mustSynchronize = true } }
                isComplete = isComplete || hasAnswer
                // A node that starts asks again soon until another node has answered.
                let isEarly = !isComplete || self.state.withLock { $0.mustSynchronize }
                let pause = isEarly ? min(interval, shortPause) : interval
                shortPause = isEarly ? min(interval, shortPause * 2) : .seconds(1)
                guard (try? await Task.sleep(for: pause)) != nil else { return }
            }
        }
        self.state.withLock { $0.task = task }
    }

    deinit {
        self.state.withLock { $0.task?.cancel() }
    }
}

extension GatewayShared {
    /// Current load of the node. The share of a core is left at 0.
    package var load: NodeLoad {
        var load = NodeLoad()
        load.connections = self.withAdmission { $0.connections }
        load.clients = self.hub.users.counts.clients
        load.rooms = self.hub.roomCount
        load.isDraining = self.withAdmission { $0.isDraining }
        return load
    }
}
