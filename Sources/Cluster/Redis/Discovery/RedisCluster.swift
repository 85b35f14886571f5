import RedisEngine
import StreamTransport

/// Receives what happens at the servers of a client.
protocol RedisClusterOwner: AnyObject {
    /// All slots have a node, and no connection to one is broken.
    func clusterBecameReady(_ cluster: RedisCluster)
    func clusterFailed(_ cluster: RedisCluster, _ failure: String)
    func cluster(_ cluster: RedisCluster, subscribed channel: [UInt8])
    func cluster(_ cluster: RedisCluster, received payload: [UInt8], on channel: [UInt8])
    func cluster(_ cluster: RedisCluster, reported text: String)
}

/// Redis Cluster: a connection to each primary that is needed, made on demand; commands and channels follow their slots.
/// Commands of one slot keep their order where some must be sent again.
///
/// Confined to its loop.
final class RedisCluster {
    /// Time for the reply to a command that was held back, at least, unless its own is shorter: a late reply ends the
    /// connection.
    private static let leastReplyTime = Duration.seconds(1)

    weak var owner: (any RedisClusterOwner)?
    private let seeds: [RedisEndpoint]
    private let credentials: RedisCredentials?
    private let scripts: [RedisScript]
    private let context: RedisContext
    private let slotSource: SlotMapSource
    private var map = RedisSlotMap()
    /// Whether each slot had a node when the map was read.
    private var isComplete = false
    private var nodes: [RedisEndpoint: RedisNode] = [:]
    /// Nodes whose last attempt to connect failed.
    private var broken: Set<RedisEndpoint> = []
    /// Node that each channel is subscribed at; `nil` until the map is read again.
    private var channels: [[UInt8]: RedisEndpoint?] = [:]
    /// Commands without a result, by slot.
    private var queues: [Int: RedisSlotQueue<ClusterCommand>] = [:]
    /// Commands that are held back, of all slots, and their bytes.
    private var heldCount = 0
    private var heldBytes = 0
    private var isPaused = false
    private(set) var isReady = false

    init(
        _ seeds: [RedisEndpoint], credentials: RedisCredentials?, scripts: [RedisScript], _ context: RedisContext
    ) {
        self.seeds = seeds
        self.credentials = credentials
        self.scripts = scripts
        self.context = context
        self.slotSource = SlotMapSource(credentials: credentials, context)
    }

    private var loop: Loop { self.context.loop }

    func start() {
        self.slotSource.owner = self
        self.slotSource.refresh()
    }

    func stop() {
        self.owner = nil
        self.isReady = false
        self.slotSource.stop()
        for node in self.nodes.values { node.stop() }
        self.nodes = [:]
        for command in self.queues.values.flatMap(\.heldCommands) {
            self.loop.disarm(command.timer)
            self.releaseSize(of: command)
            self.context.refuse(command.complete)
        }
        self.queues = [:]
    }

    func pause() {
        self.isPaused = true
        for node in self.nodes.values { node.pause() }
    }

    func resume() {
        self.isPaused = false
        for node in self.nodes.values { node.resume() }
    }

    // MARK: Nodes

    private func node(at endpoint: RedisEndpoint) -> RedisNode {
        if let node = self.nodes[endpoint] { return node }
        let node = RedisNode(
            .fixed(.endpoint(endpoint)), credentials: self.credentials, scripts: self.scripts, isSharded: true,
            self.context)
        self.nodes[endpoint] = node
        node.owner = self
        if self.isPaused { node.pause() }
        node.start()
        return node
    }

    func server(ofKey key: [UInt8]) -> RedisEndpoint? { self.map.node(ofKey: key) }

    private func endpoint(of node: RedisNode) -> RedisEndpoint? {
        guard case .fixed(.endpoint(let endpoint)) = node.serverSource else { return nil }
        return endpoint
    }

    private func updateReadiness(_ failure: String) {
        let isReady = self.isComplete && self.broken.isDisjoint(with: self.map.nodes)
        guard isReady != self.isReady || !isReady else { return }
        self.isReady = isReady
        if isReady { self.owner?.clusterBecameReady(self) } else { self.owner?.clusterFailed(self, failure) }
    }

    // MARK: Commands

    /// - Parameters:
    ///   - announcement: of a script; made where another node than the slot's executes it.
    ///   - timeout: a command that is held back fails when those before it have a result, even if that is later.
    func submit(
        _ command: RedisCommand, key: [UInt8]?, announcement: RedisAnnouncement? = nil, timeout: Duration,
        _ completion: @escaping RedisCompletion
    ) {
        let deadline = self.loop.now.advanced(by: timeout)
        let command = ClusterCommand(
            command, key: key, announcement: announcement, timeout: timeout, deadline: deadline, in: self, completion)
        guard let slot = command.slot, self.owner != nil else { return self.send(command) }
        if self.queues[slot]?.isHolding == true {
            let settings = self.context.settings
            let size = command.command.encodedSize
            guard self.heldCount < settings.maximumCommands, size <= settings.maximumCommandBytes - self.heldBytes
            else {
                return self.context.refuse(completion)
            }
            self.holdSize(size, of: command)
        }
        if self.queues[slot, default: RedisSlotQueue()].add(command) { self.send(command) }
    }

    private func perform(_ action: RedisSlotQueue<ClusterCommand>.Action) {
        switch action {
        case .send(let commands): for command in commands { self.send(command) }
        case .pause(let command, let pause):
            // It may have waited for others since it was refused; those behind it wait for it.
            let rest = self.loop.now.duration(to: command.deadline)
            self.context.arm(command.timer, after: min(pause, rest), target: command)
        case .none: break
        }
    }

    /// Sends a command to its own target, or to the node of its slot. `replied` is called in a later turn.
    private func send(_ command: ClusterCommand) {
        self.releaseSize(of: command)
        let timeout = self.loop.now.duration(to: command.deadline)
        // Nodes that redirect a command have not executed it. What a script has done is announced even late.
        guard self.owner != nil, timeout > .zero || command.isAnnounced,
            let node = command.target?.endpoint ?? self.node(for: command)
        else {
            return self.context.refuse { self.replied(command, $0, by: nil) }
        }
        let isAsking = command.target?.isAsking ?? false
        let replyTime = max(timeout, min(command.timeout, Self.leastReplyTime))
        self.node(at: node).submit(command.command, timeout: replyTime, isAsking: isAsking, waits: true) {
            [weak self] result in
            guard let self else { return command.complete(result) }
            self.replied(command, result, by: node)
        }
    }

    private func node(for command: ClusterCommand) -> RedisEndpoint? {
        guard let slot = command.slot else { return self.map.nodes.first { !self.broken.contains($0) } }
        return self.map.node(of: slot)
    }

    /// - Parameter node: `nil` if the command was not sent.
    private func replied(
        _ command: ClusterCommand, _ result: Result<RedisValue, RedisClientError>, by node: RedisEndpoint?
    ) {
        guard let node, self.owner != nil, !command.isAnnounced else { return self.finish(command, result) }
        guard case .failure(.server(let error)) = result else {
            guard command.beginAnnouncement(after: result) else { return self.finish(command, result) }
            return self.sendAgain(command, after: nil)
        }
        let action = command.redirects.replied(.error(error), from: node, map: &self.map)
        if self.map.isStale { self.slotSource.refresh() }
        switch action {
        case .deliver: self.finish(command, result)
        case .resend(let target, let isAsking):
            let isOfSlot = !isAsking && target == command.slot.flatMap { self.map.node(of: $0) }
            command.target = isOfSlot ? nil : (target, isAsking)
            command.asker = isAsking ? node : nil
            self.sendAgain(command, after: nil)
        case .retry(let pause):
            guard pause < self.loop.now.duration(to: command.deadline) else { return self.finish(command, result) }
            command.target = nil
            self.sendAgain(command, after: pause)
        }
    }

    private func sendAgain(_ command: ClusterCommand, after pause: Duration?) {
        guard let slot = command.slot else {
            guard let pause else { return self.send(command) }
            return self.context.arm(command.timer, after: pause, target: command)
        }
        self.holdSize(command.command.encodedSize, of: command)
        self.perform(
            self.queues[slot]?.returned(command, after: pause, isAlone: command.target != nil) ?? .none)
    }

    fileprivate func pauseOver(_ command: ClusterCommand) {
        guard let slot = command.slot else { return self.send(command) }
        self.perform(self.queues[slot]?.pauseOver() ?? .none)
    }

    private func finish(_ command: ClusterCommand, _ result: Result<RedisValue, RedisClientError>) {
        if let slot = command.slot, let index = self.queues.index(forKey: slot) {
            let action = self.queues.values[index].answered(command)
            if self.queues.values[index].isEmpty { self.queues.remove(at: index) }
            self.perform(action)
        }
        command.complete(result)
    }

    private func holdSize(_ size: Int, of command: ClusterCommand) {
        command.heldSize = size
        self.heldCount += 1
        self.heldBytes += size
    }

    private func releaseSize(of command: ClusterCommand) {
        guard let size = command.heldSize.take() else { return }
        self.heldCount -= 1
        self.heldBytes -= size
    }

    // MARK: Channels

    func setSubscription(_ channel: [UInt8], isWanted: Bool) {
        if isWanted {
            self.channels[channel] = .some(nil)
            self.assign(channel)
        } else if let endpoint = self.channels.removeValue(forKey: channel) ?? nil {
            self.nodes[endpoint]?.setSubscription(channel, isWanted: false)
        }
    }

    /// Subscribes at the node of the channel's slot, if it is subscribed at another one.
    private func assign(_ channel: [UInt8]) {
        guard let known = self.channels[channel] else { return }
        let endpoint = self.map.node(ofKey: channel)
        guard known != endpoint else { return }
        if let known { self.nodes[known]?.setSubscription(channel, isWanted: false) }
        self.channels[channel] = .some(endpoint)
        if let endpoint { self.node(at: endpoint).setSubscription(channel, isWanted: true) }
    }

    /// Ends connections that are of no use any more: to nodes without slots.
    private func prune() {
        let needed = Set(self.map.nodes)
        for (endpoint, node) in self.nodes where !needed.contains(endpoint) && node.isIdle {
            node.stop()
            self.nodes[endpoint] = nil
        }
        self.broken.formIntersection(self.nodes.keys)
    }
}

extension RedisCluster: SlotMapSourceOwner {
    var slotMapCandidates: [RedisEndpoint] {
        let connected = self.nodes.filter { $0.value.isReady }.keys
        let known = self.map.nodes.filter { !connected.contains($0) && !self.broken.contains($0) }
        var candidates = connected.shuffled(using: &self.context.generator) + known
        candidates += self.seeds.filter { !candidates.contains($0) }
        return candidates
    }

    func slotMapRead(_ map: RedisSlotMap) {
        self.map = map
        self.isComplete = !map.isStale
        for channel in Array(self.channels.keys) { self.assign(channel) }
        self.prune()
        let missing = self.isComplete ? "a node cannot be reached" : "slots have no node"
        self.updateReadiness("the Redis cluster is not complete: \(missing)")
    }

    func slotMapFailed(_ failure: String) {
        guard !self.isReady else { return self.owner?.cluster(self, reported: failure) ?? () }
        self.owner?.clusterFailed(self, failure)
    }
}

extension RedisCluster: RedisNodeOwner {
    func nodeBecameReady(_ node: RedisNode) {
        guard let endpoint = self.endpoint(of: node), self.broken.remove(endpoint) != nil else { return }
        self.updateReadiness("the Redis cluster is not complete: another node cannot be reached")
    }

    func nodeFailed(_ node: RedisNode, _ failure: String) {
        guard let endpoint = self.endpoint(of: node) else { return }
        self.broken.insert(endpoint)
        self.slotSource.refresh()
        if self.map.nodes.contains(endpoint) { self.updateReadiness(failure) }
    }

    func node(_ node: RedisNode, subscribed channel: [UInt8]) {
        guard self.channels[channel] == self.endpoint(of: node) else { return }
        self.slotSource.slotWasRight()
        self.owner?.cluster(self, subscribed: channel)
    }

    func node(_ node: RedisNode, received payload: [UInt8], on channel: [UInt8]) {
        guard self.channels[channel] == self.endpoint(of: node) else { return }
        self.owner?.cluster(self, received: payload, on: channel)
    }

    func node(_ node: RedisNode, lost channels: [[UInt8]], _ error: RedisServerError?) {
        if let error { self.owner?.cluster(self, reported: "a node of the Redis cluster refused channels: \(error)") }
        for channel in channels where self.channels[channel] == self.endpoint(of: node) {
            self.channels[channel] = .some(nil)
        }
        self.slotSource.slotWasWrong()
    }

    func nodeEndedSubscriptions(_ node: RedisNode) {
        guard let endpoint = self.endpoint(of: node), !self.map.nodes.contains(endpoint) else { return }
        self.prune()
    }
}

/// An unanswered command in a cluster. Where a script must be announced, the announcement takes its place after its
/// reply, so that later commands wait for it.
private final class ClusterCommand {
    private(set) var command: RedisCommand
    let slot: Int?
    /// For the reply to each attempt.
    let timeout: Duration
    let deadline: MonotonicInstant
    let timer = LoopTimer()
    var redirects = RedisClusterRedirects()
    /// Node of the next attempt, if it is not that of the slot.
    var target: (endpoint: RedisEndpoint, isAsking: Bool)?
    /// Node that sent the command to `target` with `ASK`.
    var asker: RedisEndpoint?
    /// Bytes that count as held back; `nil` while the command is unanswered.
    var heldSize: Int?
    private let announcement: RedisAnnouncement?
    /// Reply of the script that is announced.
    private var scriptReply: RedisValue?
    private let completion: RedisCompletion
    private weak var cluster: RedisCluster?

    init(
        _ command: RedisCommand, key: [UInt8]?, announcement: RedisAnnouncement?, timeout: Duration,
        deadline: MonotonicInstant, in cluster: RedisCluster, _ completion: @escaping RedisCompletion
    ) {
        self.command = command
        self.slot = key.map { RedisKeySlot.of($0) }
        self.announcement = announcement
        self.timeout = timeout
        self.deadline = deadline
        self.cluster = cluster
        self.completion = completion
    }

    var isAnnounced: Bool { self.scriptReply != nil }

    /// - Returns: whether the command is the announcement of a script's result from now on.
    func beginAnnouncement(after result: Result<RedisValue, RedisClientError>) -> Bool {
        guard case .success(let reply) = result, self.target?.isAsking == true, let asker = self.asker,
            let command = self.announcement?.command(after: reply)
        else { return false }
        self.command = command
        self.scriptReply = reply
        self.target = (asker, false)
        return true
    }

    /// - Parameter result: of the last attempt.
    func complete(_ result: Result<RedisValue, RedisClientError>) {
        guard let scriptReply = self.scriptReply else { return self.completion(result) }
        switch result {
        case .success: self.completion(.success(scriptReply))
        case .failure(.server(let error)):
            // A node that does not have the slot any more has ended all subscriptions.
            if case .moved = error.code { return self.completion(.success(scriptReply)) }
            self.completion(.failure(.uncertain))
        case .failure(.notSent), .failure(.uncertain): self.completion(.failure(.uncertain))
        }
    }
}

extension ClusterCommand: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        guard let cluster = self.cluster else { return self.complete(.failure(.notSent)) }
        cluster.pauseOver(self)
    }
}
