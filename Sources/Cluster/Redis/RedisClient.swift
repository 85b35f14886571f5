import RedisEngine
import StreamTransport

/// Redis, as one loop uses it: commands, scripts and subscriptions on one connection of each server, so that replies and
/// messages have one order. A message that was published before a command was executed arrives before its reply.
///
/// Confined to its loop. Completions are called once each, and never within the call that caused them.
package final class RedisClient {
    package let address: RedisAddress
    package weak var delegate: (any RedisClientDelegate)?
    private let context: RedisContext
    private let scripts: [RedisScript]
    private var node: RedisNode?
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
    package var isReady: Bool { self.node?.isReady ?? false }

    /// Connects, and connects again whenever the connection is lost.
    package func start() {
        self.loop.assertOnLoop()
        guard self.node == nil else { return }
        self.isAway = false
        let node = self.makeNode()
        self.node = node
        node.owner = self
        for channel in self.channels { node.setSubscription(channel, isWanted: true) }
        if self.isPaused { node.pause() }
        node.start()
    }

    private func makeNode() -> RedisNode {
        let place: RedisPlace
        switch self.address.location {
        case .server(let endpoint): place = .endpoint(endpoint)
        case .unixSocket(let path): place = .unixSocket(path: path)
        case .sentinels(let endpoints, _), .cluster(let endpoints): place = .endpoint(endpoints[0])
        }
        return RedisNode(
            .fixed(place), credentials: self.address.credentials, database: self.address.database,
            scripts: self.scripts, self.context)
    }

    /// Ends the connections. Unanswered commands fail in the next turn, with `notSent` or `uncertain`. Subscriptions are
    /// kept for the next `start`.
    package func stop() {
        self.loop.assertOnLoop()
        self.node.take()?.stop()
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
        self.loop.assertOnLoop()
        guard let node = self.node else { return self.context.refuse(completion) }
        node.submit(command, timeout: timeout ?? self.settings.commandTimeout) { result in
            completion(result.mapError(\.withoutUnavailability))
        }
    }

    /// Executes a script.
    ///
    /// Scripts given to `init` are executed in the order of the calls; others, and all after somebody removed the scripts
    /// from the server, are executed after a first attempt for which the server has no script.
    /// - Parameters:
    ///   - keys: in a cluster, all of one slot.
    ///   - timeout: as for a command; twice as long where the server does not have the script.
    package func perform(
        _ script: RedisScript, keys: [[UInt8]], arguments: [RedisArgument], timeout: Duration? = nil,
        _ completion: @escaping RedisCompletion
    ) {
        self.perform(script.call(keys: keys, arguments: arguments), key: keys.first, timeout: timeout) {
            [weak self] result in
            guard case .failure(.server(let error)) = result, error.code == .noScript else { return completion(result) }
            guard let self else { return completion(.failure(.notSent)) }
            let command = script.callWithSource(keys: keys, arguments: arguments)
            self.perform(command, key: keys.first, timeout: timeout, completion)
        }
    }

    // MARK: Messages

    /// Subscribes to a channel, now and after each reconnection. In a cluster the channel belongs to its slot, so that
    /// only `SPUBLISH` reaches it.
    package func subscribe(_ channel: [UInt8]) {
        self.loop.assertOnLoop()
        guard self.channels.insert(channel).inserted else { return }
        self.node?.setSubscription(channel, isWanted: true)
    }

    /// Messages of the channel do not reach the delegate from now on.
    package func unsubscribe(_ channel: [UInt8]) {
        self.loop.assertOnLoop()
        guard self.channels.remove(channel) != nil else { return }
        self.node?.setSubscription(channel, isWanted: false)
    }

    /// Reads nothing more: neither messages nor replies. The time of commands stops. What the server keeps meanwhile is
    /// bounded by its `client-output-buffer-limit pubsub`, beyond which it ends the connection.
    package func pauseMessages() {
        self.loop.assertOnLoop()
        self.isPaused = true
        self.node?.pause()
    }

    package func resumeMessages() {
        self.loop.assertOnLoop()
        self.isPaused = false
        self.node?.resume()
    }
}

extension RedisClient: RedisNodeOwner {
    func nodeBecameReady(_ node: RedisNode) {
        self.isAway = false
        self.delegate?.redisBecameReady(self)
    }

    func nodeFailed(_ node: RedisNode, _ failure: String) {
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
