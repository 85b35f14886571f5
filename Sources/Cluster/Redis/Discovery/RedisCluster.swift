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
///
/// Confined to its loop.
final class RedisCluster {
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
    /// Node that was told of each channel; `nil` until the map is read again.
    private var channels: [[UInt8]: RedisEndpoint?] = [:]
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

    private func endpoint(of node: RedisNode) -> RedisEndpoint? {
        guard case .fixed(.endpoint(let endpoint)) = node.whereabouts else { return nil }
        return endpoint
    }

    private func updateReadiness(_ failure: String) {
        let isReady = self.isComplete && self.broken.isDisjoint(with: self.map.nodes)
        guard isReady != self.isReady || !isReady else { return }
        self.isReady = isReady
        if isReady { self.owner?.clusterBecameReady(self) } else { self.owner?.clusterFailed(self, failure) }
    }

    // MARK: Commands

    func submit(_ command: RedisCommand, key: [UInt8]?, timeout: Duration, _ completion: @escaping RedisCompletion) {
        let deadline = self.loop.now.advanced(by: timeout)
        self.send(ClusterCommand(command, key: key, deadline: deadline, in: self, completion))
    }

    /// Sends a command to the node of its slot.
    fileprivate func send(_ command: ClusterCommand) {
        guard self.owner != nil else { return self.context.refuse(command.completion) }
        let node = command.slot.map { self.map.node(of: $0) } ?? self.map.nodes.first { !self.broken.contains($0) }
        guard let node else { return self.context.refuse(command.completion) }
        self.send(command, to: node, isAsking: false)
    }

    private func send(_ command: ClusterCommand, to endpoint: RedisEndpoint, isAsking: Bool) {
        let timeout = self.loop.now.duration(to: command.deadline)
        // Nodes that redirect a command have not executed it.
        guard timeout > .zero else { return self.context.refuse(command.completion) }
        self.node(at: endpoint).submit(command.command, timeout: timeout, isAsking: isAsking, waits: true) {
            [weak self] result in
            guard let self, case .failure(.server(let error)) = result else { return command.completion(result) }
            let action = command.redirects.replied(.error(error), from: endpoint, map: &self.map)
            if self.map.isStale { self.slotSource.refresh() }
            switch action {
            case .deliver: command.completion(result)
            case .resend(let target, let isAsking): self.send(command, to: target, isAsking: isAsking)
            case .retry(let pause): self.context.arm(command.timer, after: pause, target: command)
            }
        }
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

    /// Subscribes at the node of the channel's slot, if another one was told.
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

/// A command on its way through a cluster.
private final class ClusterCommand {
    let command: RedisCommand
    let slot: Int?
    let deadline: MonotonicInstant
    let completion: RedisCompletion
    let timer = LoopTimer()
    var redirects = RedisClusterRedirects()
    private weak var cluster: RedisCluster?

    init(
        _ command: RedisCommand, key: [UInt8]?, deadline: MonotonicInstant, in cluster: RedisCluster,
        _ completion: @escaping RedisCompletion
    ) {
        self.command = command
        self.slot = key.map { RedisKeySlot.of($0) }
        self.deadline = deadline
        self.cluster = cluster
        self.completion = completion
    }
}

extension ClusterCommand: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        guard let cluster = self.cluster else { return self.completion(.failure(.notSent)) }
        cluster.send(self)
    }
}
