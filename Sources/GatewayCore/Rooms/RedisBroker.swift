import ByteKernels
import Cluster
import DequeModule
import GatewayConfiguration
import RedisEngine
import Rooms
import StreamTransport
import WebSocketProtocol

/// Rooms that the nodes of a cluster share through Redis. The loop's own client publishes and reads; messages of a room come
/// to its home loop alone, which puts them into `SharedRoom` for all loops.
final class RedisBroker: RoomBroker {
    /// Time without members after which a room's messages are not received any more.
    private static let idleTime: Duration = .seconds(1)
    private static let tickInterval: Duration = .seconds(1)
    /// Cost of publications without a result, in bytes, above which publishers are paused.
    private static let pendingLimit = 2 << 20
    /// Cost of messages of clients without a protocol that wait for Redis, in bytes.
    private static let heldLimit = 4 << 20
    private static let overhead = 512
    private static let idempotencyTime = 300_000

    /// A room whose messages this loop receives.
    private final class Feed {
        let shared: SharedRoom
        let keys: RoomKeys
        /// The history is being read from Redis; messages that it contains are dropped meanwhile.
        var isLoading = false
        /// Loading failed.
        var mustLoad = false
        var isSubscribed = false

        init(_ shared: SharedRoom, _ keys: RoomKeys) {
            self.shared = shared
            self.keys = keys
        }
    }

    private struct Held {
        let message: RoomPublication
        let shared: SharedRoom
        let complete: (Result<RoomPublished, RoomBrokerError>) -> Void
    }

    private unowned let rooms: LoopRooms
    private let hub: RoomHub
    private let cluster: RoomCluster
    private let client: RedisClient
    private let run: RedisRun
    private let history: RedisHistory
    private let presence: RedisPresence
    private var feeds: [String: Feed] = [:]
    private var feedsByChannel: [[UInt8]: Feed] = [:]
    private var pendingCost = 0
    private var held: Deque<Held> = []
    private var heldCost = 0
    private var isPaused = false
    private let timer = LoopTimer()
    private let renewal: RedisRenewal
    private(set) var isBehind = false

    private static let incompleteFileWarning = """
        Redis may lose the last second after a crash of its machine, as appendfsync is not always, and clients would hear \
        that they recovered; set appendfsync always in Redis, or durable: false in cluster
        """

    init(_ rooms: LoopRooms, _ cluster: RoomCluster) {
        self.rooms = rooms
        self.hub = rooms.hub
        self.cluster = cluster
        self.client = RedisClient(
            address: cluster.address, settings: cluster.client, scripts: RoomScripts.all, counters: cluster.counters,
            loop: rooms.loop, generator: rooms.hub.generator)
        self.run = RedisRun(self.client, isDurable: cluster.isDurable)
        self.history = RedisHistory(self.client, cluster, rooms.hub, self.run)
        self.presence = RedisPresence(self.client, cluster)
        self.renewal = RedisRenewal(self.client, self.presence, interval: cluster.presenceTime / 3)
        self.client.delegate = self
    }

    func start() {
        if self.rooms.index == 0, let warn = self.cluster.warn {
            self.run.fileIsIncomplete = { warn(Self.incompleteFileWarning) }
        }
        self.client.start()
        self.rooms.loop.arm(self.timer, after: Self.tickInterval, target: self)
    }

    func stop() {
        self.rooms.loop.disarm(self.timer)
        self.renewal.cancel()
        self.client.stop()
    }

    var isAway: Bool { !self.client.isReady }

    private var publishCommand: RedisArgument { .text(self.client.publishCommand) }

    private func keys(_ room: SharedRoom) -> RoomKeys {
        self.feeds[room.name]?.keys ?? RoomKeys(prefix: self.cluster.prefix, room: room.name)
    }

    // MARK: Opening rooms

    func open(_ room: SharedRoom) {
        let home = self.hub.home(of: room.name)
        guard home != self.rooms.index else { return self.openFeed(room) }
        self.hub.onLoop(home) { ($0.broker as? RedisBroker)?.openFeed(room) }
    }

    private func openFeed(_ room: SharedRoom) {
        if let feed = self.feeds[room.name] {
            // A client needs publications that this node does not have.
            if feed.isSubscribed, !feed.isLoading { self.load(feed) }
            return self.openAlone(feed)
        }
        guard room.beginOpening() else { return }
        // The feed is a use of the shared room.
        let shared = self.hub.acquire(room)
        let feed = Feed(shared, RoomKeys(prefix: self.cluster.prefix, room: room.name))
        self.feeds[room.name] = feed
        self.feedsByChannel[feed.keys.channel] = feed
        self.client.subscribe(feed.keys.channel)
        self.openAlone(feed)
    }

    /// Opens a room that works without Redis, while Redis is away.
    private func openAlone(_ feed: Feed) {
        if self.isAway, self.delivers(alone: feed.shared) { self.opened(feed) }
    }

    /// Whether a room works without Redis.
    private func delivers(alone room: SharedRoom) -> Bool {
        self.cluster.deliversAlone && !room.policy.keepsHistory
    }

    private func closeUnused() {
        let now = self.rooms.now
        for feed in self.feeds.values where feed.shared.closeIfUnused(now: now, idleTime: Self.idleTime) {
            self.feeds[feed.shared.name] = nil
            self.feedsByChannel[feed.keys.channel] = nil
            self.client.unsubscribe(feed.keys.channel)
            self.hub.release(feed.shared)
        }
    }

    /// Reads what this node does not have of the room's stream.
    /// - Parameter isWhole: whether to read what it has, too.
    private func load(_ feed: Feed, isWhole: Bool = false) {
        let policy = feed.shared.policy
        guard policy.keepsHistory else { return self.opened(feed) }
        feed.isLoading = true
        feed.mustLoad = false
        let position = feed.shared.knownPosition
        let start = isWhole ? nil : position
        self.history.load(
            feed.keys, policy, after: start,
            while: { [weak self] in self?.feeds[feed.shared.name] === feed }
        ) { [weak self] result in
            guard let self, self.feeds[feed.shared.name] === feed else { return }
            feed.isLoading = false
            switch result {
            case .success(let snapshot): self.loaded(feed, snapshot, from: position)
            // After the connection's loss the channel is subscribed again, and loading follows.
            case .failure: feed.mustLoad = true
            }
        }
    }

    private func loaded(_ feed: Feed, _ snapshot: SharedRoom.Snapshot, from position: StreamPosition?) {
        let (result, loops) = feed.shared.load(snapshot, now: self.rooms.now)
        switch result {
        case .loaded:
            self.distribute(loops, feed.shared)
            self.opened(feed)
        case .wentBack: self.startNewEpoch(feed, position ?? snapshot.position)
        case .needsAll: self.load(feed, isWhole: true)
        }
    }

    private func opened(_ feed: Feed) {
        if !feed.shared.policy.keepsHistory { _ = feed.shared.load(nil, now: self.rooms.now) }
        let name = feed.shared.name
        for loop in feed.shared.takeWaiting().sorted() {
            if loop == self.rooms.index {
                self.rooms.opened(name, isPatient: false)
            } else {
                self.hub.onLoop(loop) { $0.opened(name, isPatient: false) }
            }
        }
    }
}

// MARK: Publishing

extension RedisBroker {
    func publish(
        _ message: RoomPublication, in room: SharedRoom,
        _ complete: @escaping (Result<RoomPublished, RoomBrokerError>) -> Void
    ) {
        var message = message
        message.publication.time = UInt64(clamping: Machine.wallClockMilliseconds())
        let (key, now) = (message.idempotencyKey, self.rooms.now)
        if self.cluster.deliversAlone, let key, room.wasDeliveredAlone(key, now: now) {
            return complete(.success(RoomPublished(position: StreamPosition(), isRepeated: true)))
        }
        guard self.isAway else { return self.send(message, in: room, complete) }
        if self.delivers(alone: room) {
            if let key { room.noteDeliveredAlone(key, now: now) }
            self.deliverAlone(.publication(message.publication), message.plain, message.origin, room)
            return complete(.success(RoomPublished(position: StreamPosition())))
        }
        // A client without a protocol gets no error for a refused message.
        guard message.plain != nil else { return complete(.failure(.away)) }
        self.hold(message, in: room, complete)
    }

    /// Keeps a message until Redis is back.
    private func hold(
        _ message: RoomPublication, in room: SharedRoom,
        _ complete: @escaping (Result<RoomPublished, RoomBrokerError>) -> Void
    ) {
        let cost = Self.cost(message)
        guard self.heldCost + cost <= Self.heldLimit else { return complete(.failure(.away)) }
        self.heldCost += cost
        // The message is a use of the shared room.
        self.held.append(Held(message: message, shared: self.hub.acquire(room), complete: complete))
    }

    private func sendHeld() {
        let messages = self.held
        self.held = []
        self.heldCost = 0
        for held in messages {
            self.publish(held.message, in: held.shared, held.complete)
            self.hub.release(held.shared)
        }
    }

    private static func cost(_ message: RoomPublication) -> Int {
        max(message.publication.data.bytes.count, message.plain?.bytes.count ?? 0) + Self.overhead
    }

    private func deliverAlone(
        _ content: RoomMessage.Content, _ plain: RoomMessage.Plain?, _ origin: RoomMessage.Origin?, _ room: SharedRoom
    ) {
        let received = room.receive(content, plain: plain, origin: origin, position: nil, now: self.rooms.now)
        if case .delivered(let loops) = received { self.rooms.distribute(loops, of: room) }
    }

    private func send(
        _ message: RoomPublication, in room: SharedRoom,
        _ complete: @escaping (Result<RoomPublished, RoomBrokerError>) -> Void
    ) {
        let cost = Self.cost(message)
        self.pendingCost += cost
        if self.pendingCost >= Self.pendingLimit { self.isBehind = true }
        let isKept = room.policy.keepsHistory && !message.skipsHistory
        let envelope = self.envelope(message)
        guard isKept || message.idempotencyKey != nil else {
            return self.client.publish(RoomScripts.message(envelope), on: self.keys(room).channel) {
                [weak self] result in
                self?.completed(cost)
                complete(result.decoded { _ in RoomPublished(position: StreamPosition()) })
            }
        }
        self.store(envelope, isKept: isKept, message.idempotencyKey, in: room) { [weak self] result in
            self?.completed(cost)
            let published = result.decoded(Self.published)
            if isKept, case .success(let stored) = published { room.noteStored(at: stored.position) }
            complete(published)
        }
    }

    /// Appends a publication to the stream if it is kept, and sends it to the nodes.
    private func store(
        _ envelope: [UInt8], isKept: Bool, _ idempotencyKey: String?, in room: SharedRoom,
        _ complete: @escaping RedisCompletion
    ) {
        let (keys, policy) = (self.keys(room), room.policy)
        let arguments: [RedisArgument] = [
            .bytes(envelope), self.history.newEpoch(), .number(isKept ? policy.historySize : 0),
            .number(policy.historyBytes), .number(policy.historyTime.wholeMilliseconds), RedisHistory.metaTime(policy),
            .bytes(keys.channel), self.publishCommand, .number(idempotencyKey == nil ? 0 : Self.idempotencyTime),
        ]
        let known = room.knownPosition ?? StreamPosition()
        let once = idempotencyKey.map { [keys.idempotency($0)] } ?? []
        let announcement = RedisAnnouncement(on: keys.channel) { reply in
            guard let published = try? Self.published(reply), !published.isRepeated else { return nil }
            return RoomScripts.message(envelope, at: published.position)
        }
        self.client.perform(
            RoomScripts.publish, keys: (isKept ? [keys.meta, keys.stream] : []) + once,
            arguments: arguments + self.run.arguments + [.text(known.epoch), .text("\(known.offset)")],
            announcement: announcement, complete)
    }

    private func completed(_ cost: Int) {
        self.pendingCost -= cost
        guard self.isBehind, self.pendingCost < Self.pendingLimit / 2 else { return }
        self.isBehind = false
        self.rooms.brokerCaughtUp()
    }

    private func envelope(_ message: RoomPublication) -> [UInt8] {
        var publication = message.publication
        let plain = message.plain.map { RoomEnvelope.Plain(isBinary: $0.kind == .binary, bytes: $0.bytes) }
        // It is made again of the bytes as they were received.
        if plain != nil { publication.data = .binary([]) }
        return RoomEnvelope(.publication(publication), plain: plain, origin: self.origin(message.origin)).encoded
    }

    private func origin(_ origin: RoomMessage.Origin?) -> RoomEnvelope.Origin? {
        origin.map { RoomEnvelope.Origin(node: self.cluster.node, loop: $0.loop, member: $0.member) }
    }

    private static func published(_ reply: RedisValue) throws -> RoomPublished {
        let parts = try reply.array()
        guard parts.count == 3 else { throw UnexpectedReply() }
        return RoomPublished(
            position: StreamPosition(offset: try Self.offset(parts[1]), epoch: try parts[2].text()),
            isRepeated: try parts[0].int() == 1)
    }

    private static func offset(_ value: RedisValue) throws -> UInt64 {
        guard let offset = UInt64(exactly: try value.int()) else { throw UnexpectedReply() }
        return offset
    }
}

// MARK: History

extension RedisBroker {
    func history(
        of room: SharedRoom, _ request: Command.HistoryRequest, while isWanted: @escaping () -> Bool,
        _ complete: @escaping (Result<RoomHistoryPage, RoomBrokerError>) -> Void
    ) {
        let policy = room.policy
        guard policy.keepsHistory else {
            return complete(.success(RoomHistoryPage(publications: [], position: StreamPosition())))
        }
        self.history.page(self.keys(room), policy, request, while: isWanted, complete)
    }

    func removeHistory(of room: SharedRoom, _ complete: @escaping (Result<Void, RoomBrokerError>) -> Void) {
        self.history.remove(0, .historyRemoved, self.keys(room)) { complete($0.map { _ in }) }
    }

    func removePublication(
        of room: SharedRoom, offset: UInt64, _ complete: @escaping (Result<Bool, RoomBrokerError>) -> Void
    ) {
        self.history.remove(offset, .publicationRemoved(offset: offset), self.keys(room)) {
            complete($0.map { $0 > 0 })
        }
    }

    /// Redis has forgotten publications that it acknowledged: their offsets must not be used again in this epoch.
    private func startNewEpoch(_ feed: Feed, _ position: StreamPosition) {
        feed.isLoading = true
        self.history.startNewEpoch(feed.keys, position) { [weak self] hasBegun in
            guard let self, self.feeds[feed.shared.name] === feed else { return }
            feed.isLoading = false
            if hasBegun { self.load(feed) } else { feed.mustLoad = true }
        }
    }
}

// MARK: Presence and users

extension RedisBroker {
    func entered(_ room: SharedRoom, _ info: ClientInfo, _ complete: @escaping () -> Void) {
        let policy = room.policy
        guard policy.hasPresence || policy.sendsJoinLeave else { return complete() }
        if self.isAway, self.delivers(alone: room), policy.sendsJoinLeave {
            self.deliverAlone(.join(info), nil, nil, room)
            return complete()
        }
        let envelope = policy.sendsJoinLeave ? RoomEnvelope(.join(info)).encoded : []
        guard policy.hasPresence else {
            self.presence.tell(envelope, in: self.keys(room))
            return complete()
        }
        let isListed = !self.isAway
        let listed = [(client: info.client, info: RoomEnvelope.encoded(info))]
        self.presence.list(listed, in: self.keys(room), telling: envelope) { _ in
            if isListed { complete() }
        }
        if !isListed { complete() }
    }

    func left(_ room: SharedRoom, _ info: ClientInfo) {
        let policy = room.policy
        guard policy.hasPresence || policy.sendsJoinLeave else { return }
        if self.isAway, self.delivers(alone: room), policy.sendsJoinLeave {
            return self.deliverAlone(.leave(info), nil, nil, room)
        }
        let envelope = policy.sendsJoinLeave ? RoomEnvelope(.leave(info)).encoded : []
        guard policy.hasPresence else { return self.presence.tell(envelope, in: self.keys(room)) }
        self.presence.remove(info.client, in: self.keys(room), telling: envelope)
    }

    func presence(of room: SharedRoom, _ complete: @escaping (Result<[ClientInfo], RoomBrokerError>) -> Void) {
        self.presence.clients(in: self.keys(room), complete)
    }

    func presenceCounts(
        of room: SharedRoom, _ complete: @escaping (Result<RoomPresenceCounts, RoomBrokerError>) -> Void
    ) {
        self.presence.count(in: self.keys(room), complete)
    }

    func register(client: String, user: String, limit: Int, _ complete: @escaping (Bool) -> Void) {
        self.presence.register(client: client, user: user, limit: limit, complete)
    }

    func unregister(client: String, user: String) { self.presence.unregister(client: client, user: user) }
}

// MARK: What Redis says

extension RedisBroker: RedisClientDelegate {
    func redisBecameReady(_ client: RedisClient) {
        if self.rooms.index == 0 { self.cluster.report(false, "Redis is reached") }
        self.renewal.redisBecameReady()
        self.run.forget()
        self.run.ask()
        self.sendHeld()
        self.rooms.brokerCaughtUp()
    }

    func redisWentAway(_ client: RedisClient, _ failure: String) {
        self.run.forget()
        self.renewal.cancel()
        for feed in self.feeds.values { self.openAlone(feed) }
        if self.rooms.index == 0 { self.cluster.report(true, failure) }
    }

    func redisSubscribed(_ client: RedisClient, to channel: [UInt8]) {
        guard let feed = self.feedsByChannel[channel] else { return }
        feed.isSubscribed = true
        self.load(feed)
    }

    func redisReceived(_ client: RedisClient, _ payload: [UInt8], on channel: [UInt8]) {
        guard let feed = self.feedsByChannel[channel], let message = RoomMessage.Parts(payload, node: self.cluster.node)
        else { return }
        self.rooms.loop.spend(TurnBudget.frame + payload.count)
        if let removal = message.removal { return self.remove(removal, in: feed) }
        let received = feed.shared.receive(
            message.content, plain: message.plain, origin: message.origin, position: message.position,
            isLoading: feed.isLoading, now: self.rooms.now)
        switch received {
        case .delivered(let loops): self.distribute(loops, feed.shared)
        case .begun(let loops):
            self.distribute(loops, feed.shared)
            if !feed.isLoading { self.load(feed, isWhole: true) }
        case .gap: self.load(feed)
        case .ignored: break
        }
    }

    /// In a Redis Cluster, a removal may overtake the publication that it removed, and the reply with the history from before
    /// it. The history's number of removals then shows what this node must not keep.
    private func remove(_ removal: RoomMessage.Parts.Removal, in feed: Feed) {
        let newest = feed.shared.knownPosition?.offset ?? 0
        let mayBeEarly: Bool
        switch removal {
        case .all:
            feed.shared.removeHistory()
            mayBeEarly = true
        case .one(let offset):
            _ = feed.shared.removePublication(offset: offset)
            mayBeEarly = offset > newest
        }
        if feed.isLoading { feed.mustLoad = true } else if mayBeEarly { self.load(feed) }
    }

    private func distribute(_ loops: [(loop: Int, cost: Int)], _ shared: SharedRoom) {
        guard !loops.isEmpty, !self.rooms.distributeReceived(loops, of: shared), !self.isPaused else { return }
        self.isPaused = true
        self.client.pauseMessages()
    }

    func loopsCaughtUp() {
        guard self.isPaused else { return }
        self.isPaused = false
        self.client.resumeMessages()
    }
}

extension RedisBroker: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.rooms.loop.arm(self.timer, after: Self.tickInterval, target: self)
        for feed in self.feeds.values where feed.isLoading {
            if let lastPage = self.history.lastPage(of: feed.keys) { feed.shared.noteProgress(at: lastPage) }
        }
        self.rooms.refuseLateEntries()
        self.closeUnused()
        for feed in self.feeds.values where feed.mustLoad && !feed.isLoading && feed.isSubscribed { self.load(feed) }
        guard !self.isAway, self.renewal.isDue(self.rooms.now) else { return }
        self.renewal.begin(self.feeds.values.map { ($0.shared, $0.keys) }, now: self.rooms.now)
        // It changes without a restart when the server gets an append-only file.
        self.run.ask()
    }
}
