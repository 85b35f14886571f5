import RedisEngine
import StreamTransport

/// Finds the primary by asking sentinels, and listens to one of them for a change.
///
/// Confined to its loop.
final class SentinelFinder {
    /// Called when a sentinel says that another server is the primary now. A hint only: the next search decides.
    var primaryChanged: (RedisEndpoint) -> Void = { _ in }
    private let name: String
    /// The one that answered last is the first.
    private var sentinels: [RedisEndpoint]
    private let credentials: RedisCredentials?
    private let context: RedisContext
    private var discovery: SentinelDiscovery
    private var query: RedisQuery?
    private var asked: RedisEndpoint?
    private var completion: ((Result<RedisServerAddress, RedisLinkFailure>) -> Void)?
    /// The connection to the sentinel that is listened to.
    private var watch: RedisLink?
    private var reconnection = RedisReconnection()
    private let timer = LoopTimer()

    /// - Parameter credentials: of the primary.
    init(_ sentinels: [RedisEndpoint], name: String, credentials: RedisCredentials?, _ context: RedisContext) {
        self.sentinels = sentinels
        self.name = name
        self.credentials = credentials
        self.context = context
        self.discovery = SentinelDiscovery(sentinels: sentinels, name: name)
    }

    private var now: Duration { .nanoseconds(self.context.loop.now.nanoseconds) }

    // MARK: Asking

    private func perform(_ action: SentinelDiscovery.Action) {
        switch action {
        case .ask(let sentinel, let command, let deadline):
            self.asked = sentinel
            // Sentinels have no password, or another one.
            self.ask(command, of: sentinel, credentials: nil, deadline: deadline)
        case .check(let primary, let command, let deadline):
            self.ask(command, of: primary, credentials: self.credentials, deadline: deadline)
        case .found(let primary):
            if let asked = self.asked, let index = self.sentinels.firstIndex(of: asked) {
                self.sentinels.insert(self.sentinels.remove(at: index), at: 0)
            }
            self.listen()
            self.completion.take()?(.success(.endpoint(primary)))
        case .failed(let failures):
            let text = failures.map(\.description).joined(separator: "; ")
            self.completion.take()?(.failure(.notFound(text)))
        case .ignore: break
        }
    }

    private func ask(
        _ command: RedisCommand, of endpoint: RedisEndpoint, credentials: RedisCredentials?, deadline: Duration
    ) {
        let query = RedisQuery(
            command, to: .endpoint(endpoint), credentials: credentials, timeout: deadline - self.now, self.context
        ) { [weak self] result in
            guard let self else { return }
            self.query = nil
            switch result {
            case .success(let reply): self.perform(self.discovery.replied(reply, now: self.now))
            case .failure: self.perform(self.discovery.failed(now: self.now))
            }
        }
        self.query = query
    }

    // MARK: Listening

    private func listen() {
        guard self.watch == nil else { return }
        self.reconnection.stop()
        self.context.loop.disarm(self.timer)
        if case .connect = self.reconnection.start() { self.openWatch() }
    }

    private func openWatch() {
        let requirements = RedisLink.Requirements(isRESP3: false, isPrimary: false)
        let link = RedisLink(
            to: .endpoint(self.sentinels[0]), credentials: nil, database: 0, requirements: requirements, self.context)
        self.watch = link
        link.owner = self
        link.open()
    }
}

extension SentinelFinder: RedisFinder {
    func find(_ completion: @escaping (Result<RedisServerAddress, RedisLinkFailure>) -> Void) {
        self.query.take()?.cancel()
        self.completion = completion
        self.discovery = SentinelDiscovery(sentinels: self.sentinels, name: self.name)
        self.perform(self.discovery.start(now: self.now))
    }

    func stop() {
        self.completion = nil
        self.query.take()?.cancel()
        self.reconnection.stop()
        self.context.loop.disarm(self.timer)
        self.watch.take()?.close()
    }
}

extension SentinelFinder: RedisLinkOwner {
    func linkBecameReady(_ link: RedisLink) {
        self.reconnection.connectionReady(now: self.now)
        let channel = Array(SentinelDiscovery.switchChannel.utf8)
        _ = link.changeSubscriptions(.channel, isSubscribed: true, channels: [channel])
    }

    func link(_ link: RedisLink, pushed push: RedisPush) {
        guard case .message(_, _, _, let payload) = push,
            let primary = self.discovery.newPrimary(inMessage: payload)
        else { return }
        self.primaryChanged(primary)
    }

    func link(_ link: RedisLink, changed channels: [[UInt8]], isSubscribed: Bool, refused: RedisServerError?) {}

    func linkEnded(_ link: RedisLink, _ failure: RedisLinkFailure) {
        self.watch = nil
        // Another sentinel may be there.
        self.sentinels.append(self.sentinels.removeFirst())
        let action = self.reconnection.connectionEnded(
            failure.forReconnection, now: self.now, using: &self.context.generator)
        if case .wait(let until) = action { self.context.arm(self.timer, after: until - self.now, target: self) }
    }
}

extension SentinelFinder: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        if case .connect = self.reconnection.waitOver(now: self.now) { self.openWatch() }
    }
}
