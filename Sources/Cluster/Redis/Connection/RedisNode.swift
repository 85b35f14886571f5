import RedisEngine
import StreamTransport

/// Finds the server of a node before each connection.
protocol RedisFinder: AnyObject {
    /// - Parameter completion: called once, in a later turn, unless `stop` is called first.
    func find(_ completion: @escaping (Result<RedisServerAddress, RedisLinkFailure>) -> Void)
    func stop()
}

/// Receives what happens at a node, within its handling of an event: every function may stop the node.
protocol RedisNodeOwner: AnyObject {
    func nodeBecameReady(_ node: RedisNode)
    /// The connection ended, or an attempt failed. The node tries again.
    func nodeFailed(_ node: RedisNode, _ failure: String)
    func node(_ node: RedisNode, subscribed channel: [UInt8])
    func node(_ node: RedisNode, received payload: [UInt8], on channel: [UInt8])
    /// The server ended or refused subscriptions, as a cluster's node does that does not have their slot. The node does not
    /// try again.
    func node(_ node: RedisNode, lost channels: [[UInt8]], _ error: RedisServerError?)
    /// The server has ended the last subscription, as requested.
    func nodeEndedSubscriptions(_ node: RedisNode)
}

/// A server that a client is connected to: connects again after a pause, and subscribes again.
///
/// Confined to its loop.
final class RedisNode {
    enum ServerSource {
        case fixed(RedisServerAddress)
        case found(any RedisFinder)
    }

    let serverSource: ServerSource
    weak var owner: (any RedisNodeOwner)?
    private let context: RedisContext
    private let credentials: RedisCredentials?
    private let database: Int
    private let requirements: RedisLink.Requirements
    private let kind: RedisSubscription
    private var reconnection = RedisReconnection()
    private var link: RedisLink?
    private var subscriptions: RedisSubscriptions
    private let timer = LoopTimer()
    private var flushIsRequested = false
    private var isPaused = false

    /// - Parameter isSharded: whether the server is one of a cluster: it may be a replica, and channels have slots.
    init(
        _ serverSource: ServerSource, credentials: RedisCredentials?, database: Int = 0, scripts: [RedisScript],
        isSharded: Bool = false, _ context: RedisContext
    ) {
        self.serverSource = serverSource
        self.credentials = credentials
        self.database = database
        self.requirements = RedisLink.Requirements(isPrimary: !isSharded, scripts: scripts)
        self.kind = isSharded ? .shard : .channel
        self.subscriptions = RedisSubscriptions(isSharded: isSharded)
        self.context = context
    }

    private var loop: Loop { self.context.loop }
    private var now: Duration { .nanoseconds(self.loop.now.nanoseconds) }

    var isReady: Bool { self.link?.isReady ?? false }
    /// The server that the node is connected to, or connects to.
    var address: RedisServerAddress? { self.link?.address }
    /// Whether nothing is lost if the node is stopped.
    var isIdle: Bool { self.subscriptions.count == 0 && self.link?.isIdle ?? true }

    func start() {
        self.perform(self.reconnection.start())
    }

    /// Completions of commands are called in the next turn; the owner's functions are not called any more.
    func stop() {
        self.owner = nil
        self.reconnection.stop()
        self.loop.disarm(self.timer)
        if case .found(let finder) = self.serverSource { finder.stop() }
        self.link.take()?.close()
    }

    /// - Parameter waits: whether a connection that is not ready takes the command too.
    func submit(
        _ command: RedisCommand, timeout: Duration, isAsking: Bool = false, waits: Bool = false,
        _ completion: @escaping RedisCompletion
    ) {
        guard let link = self.link, link.isReady || waits else { return self.context.refuse(completion) }
        link.submit(command, timeout: timeout, isAsking: isAsking, completion)
    }

    func setSubscription(_ channel: [UInt8], isWanted: Bool) {
        if self.subscriptions.set(channel, isWanted: isWanted) { self.requestFlush() }
    }

    func pause() {
        self.isPaused = true
        self.link?.pause()
    }

    func resume() {
        self.isPaused = false
        self.link?.resume()
    }

    /// Another server is the primary now.
    func serverChanged(to endpoint: RedisEndpoint) {
        guard self.address != .endpoint(endpoint) else { return }
        if let link = self.link { return link.end(.primaryMoved(endpoint)) }
        self.perform(self.reconnection.serverChanged())
    }

    // MARK: Connecting

    private func perform(_ action: RedisReconnection.Action) {
        switch action {
        case .connect: self.connect()
        case .wait(let until): self.context.arm(self.timer, after: until - self.now, target: self)
        case .ignore: break
        }
    }

    private func connect() {
        self.loop.disarm(self.timer)
        switch self.serverSource {
        case .fixed(let address): self.open(address)
        case .found(let finder):
            finder.find { [weak self] result in
                switch result {
                case .success(let address): self?.open(address)
                case .failure(let failure): self?.failed(failure)
                }
            }
        }
    }

    private func open(_ address: RedisServerAddress) {
        let link = RedisLink(
            to: address, credentials: self.credentials, database: self.database, requirements: self.requirements,
            self.context)
        self.link = link
        link.owner = self
        if self.isPaused { link.pause() }
        link.open()
    }

    private func failed(_ failure: RedisLinkFailure) {
        self.context.counters.lost()
        self.subscriptions.connectionEnded()
        self.perform(
            self.reconnection.connectionEnded(
                failure.forReconnection, now: self.now, using: &self.context.generator))
        let address = self.link.map { "\($0.address): " } ?? ""
        self.link = nil
        self.owner?.nodeFailed(self, "\(address)\(failure)")
    }

    // MARK: Subscriptions

    private func requestFlush() {
        guard self.isReady, !self.flushIsRequested else { return }
        self.flushIsRequested = true
        self.loop.atTurnEnd(self)
    }

    private func flushSubscriptions() {
        guard let link = self.link, link.isReady else { return }
        while let batch = self.subscriptions.nextBatch() {
            guard link.changeSubscriptions(self.kind, isSubscribed: batch.isSubscribed, channels: batch.channels)
            else { return link.end(.connection(.closed)) }
        }
    }
}

extension RedisNode: TurnEndTarget {
    func turnEnded() {
        self.flushIsRequested = false
        self.flushSubscriptions()
    }
}

extension RedisNode: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        guard self.owner != nil else { return self.stop() }
        self.perform(self.reconnection.waitOver(now: self.now))
    }
}

extension RedisNode: RedisLinkOwner {
    func linkBecameReady(_ link: RedisLink) {
        self.reconnection.connectionReady(now: self.now)
        self.context.counters.connected()
        self.subscriptions.connectionBecameReady()
        self.requestFlush()
        self.owner?.nodeBecameReady(self)
    }

    func link(_ link: RedisLink, pushed push: RedisPush) {
        switch push {
        case .message(self.kind, let channel, _, let payload):
            guard self.subscriptions.delivers(channel) else { return }
            self.context.counters.received(payload)
            self.owner?.node(self, received: payload, on: channel)
        case .subscriptionChanged(self.kind, let isSubscribed, let channel?, _):
            if isSubscribed {
                if self.subscriptions.confirmed(channel) { self.owner?.node(self, subscribed: channel) }
            } else if self.subscriptions.ended(channel) {
                self.owner?.node(self, lost: [channel], nil)
            }
        case .message, .subscriptionChanged, .invalidated, .other: break
        }
    }

    func link(_ link: RedisLink, changed channels: [[UInt8]], isSubscribed: Bool, refused error: RedisServerError?) {
        let batch = RedisSubscriptions.Batch(isSubscribed: isSubscribed, channels: channels)
        if let error {
            // All channels of one server have the same permissions.
            if self.kind == .channel { return link.end(.subscriptionRefused(error)) }
            let refused = self.subscriptions.refused(batch)
            if !refused.isEmpty { self.owner?.node(self, lost: refused, error) }
        } else {
            self.subscriptions.answered(batch)
        }
        self.requestFlush()
        if self.subscriptions.count == 0 { self.owner?.nodeEndedSubscriptions(self) }
    }

    func linkEnded(_ link: RedisLink, _ failure: RedisLinkFailure) {
        self.failed(failure)
    }
}
