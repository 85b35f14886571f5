import RedisEngine
import StreamTransport

/// Redis, as one loop uses it: commands, scripts and subscriptions on one connection of each server, so that replies and
/// messages have one order. A message that was published before a command was executed arrives before its reply.
///
/// Confined to its loop. Completions are called once each, and never within the call that caused them.
package final class RedisClient {
    private enum Servers {
        /// The client is stopped.
        case none
        /// One server, possibly found by sentinels.
        case one(RedisNode)
        case cluster(RedisCluster)
    }

    package let address: RedisAddress
    package weak var delegate: (any RedisClientDelegate)?
    private let context: RedisContext
    private let scripts: [RedisScript]
    private var servers = Servers.none
    private var channels: Set<[UInt8]> = []
    private var isPaused = false
    /// Whether the delegate was called with `redisWentAway` since the client was ready.
    private var isAway = false

    /// - Parameters:
    ///   - scripts: loaded on each server before it gets commands.
    ///   - counters: shared with clients of other loops.
    ///   - generator: spreads the attempts to connect.
    package init(
        address: RedisAddress, settings: RedisClientSettings, scripts: [RedisScript] = [],
        counters: RedisCounters = RedisCounters(), loop: Loop,
        generator: any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) {
        self.address = address
        self.scripts = scripts
        self.context = RedisContext(
            settings, usesTLS: address.usesTLS, counters: counters, loop: loop, generator: generator)
    }

    package var loop: Loop { self.context.loop }
    package var settings: RedisClientSettings { self.context.settings }
    package var counters: RedisCounters { self.context.counters }

    /// Whether commands are accepted.
    package var isReady: Bool {
        switch self.servers {
        case .none: false
        case .one(let node): node.isReady
        case .cluster(let cluster): cluster.isReady
        }
    }

    /// Connects, and connects again whenever the connection is lost.
    package func start() {
        self.loop.assertOnLoop()
        guard case .none = self.servers else { return }
        self.isAway = false
        switch self.address.location {
        case .server(let endpoint): self.start(.fixed(.endpoint(endpoint)))
        case .unixSocket(let path): self.start(.fixed(.unixSocket(path: path)))
        case .sentinels(let sentinels, let name):
            let finder = SentinelFinder(sentinels, name: name, credentials: self.address.credentials, self.context)
            let node = self.start(.found(finder))
            finder.primaryChanged = { [weak node] in node?.serverChanged(to: $0) }
        case .cluster(let seeds): self.startCluster(seeds)
        }
    }

    @discardableResult
    private func start(_ serverSource: RedisNode.ServerSource) -> RedisNode {
        let node = RedisNode(
            serverSource, credentials: self.address.credentials, database: self.address.database,
            scripts: self.scripts, self.context)
        self.servers = .one(node)
        node.owner = self
        for channel in self.channels { node.setSubscription(channel, isWanted: true) }
        if self.isPaused { node.pause() }
        node.start()
        return node
    }

    private func startCluster(_ seeds: [RedisEndpoint]) {
        let cluster = RedisCluster(
            seeds, credentials: self.address.credentials, scripts: self.scripts, self.context)
        self.servers = .cluster(cluster)
        cluster.owner = self
        for channel in self.channels { cluster.setSubscription(channel, isWanted: true) }
        if self.isPaused { cluster.pause() }
        cluster.start()
    }

    /// Ends the connections. Unanswered commands fail in the next turn, with `notSent` or `uncertain`. Subscriptions are
    /// kept for the next `start`.
    package func stop() {
        self.loop.assertOnLoop()
        let servers = self.servers
        self.servers = .none
        switch servers {
        case .none: break
        case .one(let node): node.stop()
        case .cluster(let cluster): cluster.stop()
        }
    }

    /// Server that commands with this key are sent to first; `nil` if there is only one, or it is not known.
    package func server(ofKey key: [UInt8]) -> RedisEndpoint? {
        if case .cluster(let cluster) = self.servers { cluster.server(ofKey: key) } else { nil }
    }

    // MARK: Commands

    /// Sends a command. It fails with `notSent` while the client is not ready.
    ///
    /// - Parameters:
    ///   - key: one that the command reads or writes: chooses the server of a cluster. `nil` for any server.
    ///   - timeout: for the reply; default: `RedisClientSettings.commandTimeout`. A connection on which a reply is late is
    ///     ended: all its commands fail.
    ///   - completion: called once, in a later turn. An error reply is a failure.
    package func perform(
        _ command: RedisCommand, key: [UInt8]?, timeout: Duration? = nil, _ completion: @escaping RedisCompletion
    ) {
        self.submit(command, key: key, timeout: timeout, completion)
    }

    private func submit(
        _ command: RedisCommand, key: [UInt8]?, announcement: RedisAnnouncement? = nil, timeout: Duration?,
        _ completion: @escaping RedisCompletion
    ) {
        self.loop.assertOnLoop()
        let timeout = timeout ?? self.settings.commandTimeout
        let deliver: RedisCompletion = { completion($0.mapError(\.withoutUnavailability)) }
        switch self.servers {
        case .one(let node): node.submit(command, timeout: timeout, deliver)
        case .cluster(let cluster):
            cluster.submit(command, key: key, announcement: announcement, timeout: timeout, deliver)
        case .none: self.context.refuse(completion)
        }
    }

    /// Executes a script.
    ///
    /// The server executes the scripts given to `init` in the order of the calls; in a cluster, those with keys of one slot,
    /// also while the slot moves to another server. A call that came after one that must be sent again waits for it, unless
    /// it was sent already: see `RedisSlotQueue`. The server does not have other scripts, nor any after `SCRIPT FLUSH`:
    /// then the client sends the source after a first attempt, and later calls may precede it.
    /// - Parameters:
    ///   - keys: in a cluster, all of one slot. While it migrates, a script with several keys of which one does not exist
    ///     fails with `notSent` when its time is over.
    ///   - announcement: what the script publishes. If the client fails to publish it where it must do so itself, the
    ///     result is `uncertain`.
    ///   - timeout: as for a command; twice as long where the server does not have the script.
    package func perform(
        _ script: RedisScript, keys: [[UInt8]], arguments: [RedisArgument], announcement: RedisAnnouncement? = nil,
        timeout: Duration? = nil, _ completion: @escaping RedisCompletion
    ) {
        let call = script.call(keys: keys, arguments: arguments)
        self.submit(call, key: keys.first, announcement: announcement, timeout: timeout) {
            [weak self] result in
            guard case .failure(.server(let error)) = result, error.code == .noScript else { return completion(result) }
            guard let self else { return completion(.failure(.notSent)) }
            let command = script.callWithSource(keys: keys, arguments: arguments)
            self.submit(command, key: keys.first, announcement: announcement, timeout: timeout, completion)
        }
    }

    // MARK: Messages

    /// Subscribes to a channel, now and after each reconnection. In a cluster the channel belongs to its slot, so that
    /// only `SPUBLISH` reaches it.
    package func subscribe(_ channel: [UInt8]) {
        self.loop.assertOnLoop()
        guard self.channels.insert(channel).inserted else { return }
        self.setSubscription(channel, isWanted: true)
    }

    /// Name of the command that publishes to subscribed channels.
    package var publishCommand: String {
        if case .cluster = self.address.location { "SPUBLISH" } else { "PUBLISH" }
    }

    /// Publishes to a channel; in a cluster, to the subscribers at the server of its slot, also while the slot migrates.
    package func publish(_ payload: [UInt8], on channel: [UInt8], _ completion: @escaping RedisCompletion) {
        let command = RedisCommand(self.publishCommand, .bytes(channel), .bytes(payload))
        self.perform(command, key: channel, completion)
    }

    /// Messages of the channel do not reach the delegate from now on.
    package func unsubscribe(_ channel: [UInt8]) {
        self.loop.assertOnLoop()
        guard self.channels.remove(channel) != nil else { return }
        self.setSubscription(channel, isWanted: false)
    }

    private func setSubscription(_ channel: [UInt8], isWanted: Bool) {
        switch self.servers {
        case .none: break
        case .one(let node): node.setSubscription(channel, isWanted: isWanted)
        case .cluster(let cluster): cluster.setSubscription(channel, isWanted: isWanted)
        }
    }

    /// Reads nothing more: neither messages nor replies. The time of commands stops. What the server keeps meanwhile is
    /// bounded by its `client-output-buffer-limit pubsub`, beyond which it ends the connection.
    package func pauseMessages() {
        self.loop.assertOnLoop()
        self.isPaused = true
        switch self.servers {
        case .none: break
        case .one(let node): node.pause()
        case .cluster(let cluster): cluster.pause()
        }
    }

    package func resumeMessages() {
        self.loop.assertOnLoop()
        self.isPaused = false
        switch self.servers {
        case .none: break
        case .one(let node): node.resume()
        case .cluster(let cluster): cluster.resume()
        }
    }
}

extension RedisClient: RedisNodeOwner {
    func nodeBecameReady(_ node: RedisNode) { self.becameReady() }
    func nodeFailed(_ node: RedisNode, _ failure: String) { self.failed(failure) }

    private func becameReady() {
        self.isAway = false
        self.delegate?.redisBecameReady(self)
    }

    private func failed(_ failure: String) {
        if self.isAway { return self.delegate?.redisReported(self, failure) ?? () }
        self.isAway = true
        self.delegate?.redisWentAway(self, failure)
    }

    func node(_ node: RedisNode, subscribed channel: [UInt8]) {
        self.delegate?.redisSubscribed(self, to: channel)
    }

    func node(_ node: RedisNode, received payload: [UInt8], on channel: [UInt8]) {
        self.delegate?.redisReceived(self, payload, on: channel)
    }

    /// Only servers of a cluster end subscriptions by themselves.
    func node(_ node: RedisNode, lost channels: [[UInt8]], _ error: RedisServerError?) {}
    func nodeEndedSubscriptions(_ node: RedisNode) {}
}

extension RedisClient: RedisClusterOwner {
    func clusterBecameReady(_ cluster: RedisCluster) { self.becameReady() }
    func clusterFailed(_ cluster: RedisCluster, _ failure: String) { self.failed(failure) }

    func cluster(_ cluster: RedisCluster, subscribed channel: [UInt8]) {
        self.delegate?.redisSubscribed(self, to: channel)
    }

    func cluster(_ cluster: RedisCluster, received payload: [UInt8], on channel: [UInt8]) {
        self.delegate?.redisReceived(self, payload, on: channel)
    }

    func cluster(_ cluster: RedisCluster, reported text: String) {
        self.delegate?.redisReported(self, text)
    }
}

extension RedisClientError {
    /// Without the errors of servers that execute nothing: other servers must be found first.
    fileprivate var withoutUnavailability: RedisClientError {
        guard case .server(let error) = self else { return self }
        switch error.code {
        case .readOnly, .masterDown, .loading, .clusterDown, .tryAgain: return .notSent
        case .moved, .ask, .crossSlot, .busy, .noScript, .outOfMemory, .noAuthentication, .wrongPassword, .noPermission,
            .noProtocol, .wrongType, .generic, .other:
            return self
        }
    }
}
