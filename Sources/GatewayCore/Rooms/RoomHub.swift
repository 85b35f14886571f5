import Cluster
import DequeModule
import GatewayConfiguration
import Rooms
import StreamTransport
import Synchronization
import WebSocketProtocol
import WebTokens

/// All rooms of the gateway, and the way of their messages to the loops.
package final class RoomHub: Sendable {
    private struct Registry {
        var rooms: [String: SharedRoom] = [:]
        /// Callers that hold a room at the moment; such a room stays.
        var uses: [String: Int] = [:]
        /// When all rooms may be visited again because there are as many as there may be.
        var nextSweep: Duration = .zero

        /// Removes up to `count` rooms without members whose history has expired.
        mutating func sweep(_ count: Int, limit: Int, now: Duration) {
            let uses = self.uses
            let isCrowded = self.rooms.count > limit / 2
            let over = self.rooms.values.lazy.filter {
                uses[$0.name] == nil && $0.isDisposable(now: now, isCrowded: isCrowded)
            }
            for name in over.prefix(count).map(\.name) { self.rooms[name] = nil }
        }
    }

    /// Why there is no room of a name.
    package enum AcquireError: Error {
        /// There are as many rooms as `max-total` allows.
        case tooManyRooms
    }

    /// Rooms removed in one sweep, so that the registry is not locked for longer than some milliseconds.
    private static let sweepLimit = 10_000
    /// Time between two sweeps for a further room.
    private static let crowdedSweepInterval: Duration = .seconds(1)

    private let registry = Mutex(Registry())
    private let settings: Mutex<RoomSettings>
    private let verifier = Mutex<TokenVerifier?>(nil)
    private let loops: [Loop]
    let inboxes: [LoopInbox]
    package let users = UserRegistry()
    package let moderation = Moderation()
    package let counters = RoomCounters()
    let emulatedInboxes = EmulatedInboxes()
    private let historyMemory: HistoryMemory
    /// Epochs and identifiers; replaced by seeded words in simulations.
    let randomWords: @Sendable (Int) -> [UInt64]

    /// Bytes that the rooms of one loop may keep for slow members.
    let backlogLimit: Int

    /// How rooms are shared with other nodes; `nil` keeps them in this process.
    let cluster: RoomCluster?
    private let version: String

    /// - Parameter version: of the gateway, for its clients.
    package init(
        loops: [Loop], settings: RoomSettings = RoomSettings(), cluster: RoomCluster? = nil,
        backlogLimit: Int = 64 << 20, version: String = "", randomWords: (@Sendable (Int) -> [UInt64])? = nil
    ) {
        self.loops = loops
        self.cluster = cluster
        self.version = version
        self.settings = Mutex(settings)
        self.historyMemory = HistoryMemory(limit: settings.maximumHistoryTotal)
        self.backlogLimit = backlogLimit
        self.inboxes = loops.map { _ in LoopInbox() }
        self.randomWords = randomWords ?? { Machine.randomWords($0) }
    }

    package var loopCount: Int { self.loops.count }

    package var now: Duration {
        .nanoseconds(Int64(clamping: self.loops.first?.system.now().nanoseconds ?? 0))
    }

    // MARK: Settings

    package var currentSettings: RoomSettings { self.settings.withLock(\.self) }

    /// For a new client.
    var clientSettings: RoomClientSettings {
        var settings = self.settings.withLock(\.client)
        settings.version = self.version
        return settings
    }

    /// Applies a new configuration; rooms change their policy at once.
    package func apply(_ settings: RoomSettings) {
        self.settings.withLock { $0 = settings }
        self.historyMemory.limit = settings.maximumHistoryTotal
        let rooms = self.registry.withLock { Array($0.rooms.values) }
        for room in rooms { room.set(settings.policy(of: room.name) ?? .open) }
    }

    /// Verifies the tokens of clients; `nil` if the configuration names none, and tokens are refused.
    package var tokenVerifier: TokenVerifier? {
        get { self.verifier.withLock(\.self) }
        set { self.verifier.withLock { $0 = newValue } }
    }

    /// `nil` if the configuration has policies, and none for this name.
    package func policy(of room: String) -> RoomPolicy? { self.settings.withLock { $0.policy(of: room) } }

    /// Checks the name of the room that a client without a protocol wants to enter.
    /// - Throws: 414 for a name longer than `max-name-length`, 400 for one with control characters.
    func checkName(_ matched: MatchedRequest) throws(HandshakeRefusal) {
        guard matched.route.configuration.target == .chat, let name = matched.match.value(of: "room") else { return }
        let limit = self.settings.withLock(\.client.maximumChannelLength)
        guard name.utf8.count <= limit else {
            throw HandshakeRefusal(
                status: 414, explanation: "The name of a room has at most \(limit) bytes; use a shorter one.")
        }
        guard name.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw HandshakeRefusal(
                status: 400, explanation: "The name of a room has no control characters; use another one.")
        }
    }

    // MARK: Rooms

    /// The room of this name, made on first use, until `release`. Loops call `LoopRooms.acquire`.
    package func acquire(_ name: String) throws(AcquireError) -> SharedRoom {
        if let room = self.acquireExisting(name) { return room }
        let (policy, limit) = self.settings.withLock { ($0.policy(of: name) ?? .open, $0.maximumRooms) }
        let now = self.now
        let room = self.registry.withLock { registry -> SharedRoom? in
            if registry.rooms[name] == nil, registry.rooms.count >= limit, now >= registry.nextSweep {
                registry.nextSweep = now + Self.crowdedSweepInterval
                registry.sweep(Self.sweepLimit, limit: limit, now: now)
            }
            guard let room = registry.rooms[name] ?? (registry.rooms.count < limit ? self.make(name, policy) : nil)
            else { return nil }
            registry.uses[name, default: 0] += 1
            registry.rooms[name] = room
            return room
        }
        guard let room else {
            self.counters.addRefusedRoom()
            throw .tooManyRooms
        }
        return room
    }

    private func make(_ name: String, _ policy: RoomPolicy) -> SharedRoom {
        SharedRoom(name: name, policy: policy, isLocal: self.cluster == nil, memory: self.historyMemory) {
            [randomWords] in Self.text(randomWords(1))
        }
    }

    /// One more use of a room that the caller has, until `release`.
    func acquire(_ room: SharedRoom) -> SharedRoom {
        self.registry.withLock { registry in
            registry.uses[room.name, default: 0] += 1
            let registered = registry.rooms[room.name] ?? room
            registry.rooms[room.name] = registered
            return registered
        }
    }

    /// The room of this name until `release`; `nil` if nobody is in it and it keeps nothing.
    package func acquireExisting(_ name: String) -> SharedRoom? {
        self.registry.withLock { registry in
            guard let room = registry.rooms[name] else { return nil }
            registry.uses[name, default: 0] += 1
            return room
        }
    }

    package func release(_ room: SharedRoom) {
        let now = self.now
        self.registry.withLock { registry in
            let uses = (registry.uses[room.name] ?? 1) - 1
            registry.uses[room.name] = uses > 0 ? uses : nil
            if uses <= 0, room.isDisposable(now: now) { registry.rooms[room.name] = nil }
        }
    }

    /// Removes rooms without members whose history has expired, up to a fixed number.
    func sweep() {
        let now = self.now
        let limit = self.settings.withLock(\.maximumRooms)
        self.registry.withLock { $0.sweep(Self.sweepLimit, limit: limit, now: now) }
    }

    /// Removes the histories of the rooms that were not used for longest while all together exceed their limit: those
    /// without members first. The room that was used last loses its oldest publications alone.
    func boundHistories() {
        self.historyMemory.freeIfExceeded {
            let rooms = self.registry.withLock { Array($0.rooms.values) }
            let used = rooms.compactMap { room in room.historyUse.map { (room: room, use: $0) } }
                .sorted { $0.use < $1.use }
            for (room, _) in used.dropLast() where self.historyMemory.bytes > self.historyMemory.target {
                room.forgetHistory()
                self.counters.addRemovedHistory()
            }
            guard let last = used.last?.room else { return }
            let excess = self.historyMemory.bytes - self.historyMemory.target
            if excess > 0 { last.shrinkHistory(by: excess) }
        }
    }

    /// Bytes of all histories.
    package var historyBytes: Int { self.historyMemory.bytes }

    /// In the order of their names.
    package var rooms: [SharedRoom] {
        self.registry.withLock { Array($0.rooms.values) }.sorted { $0.name < $1.name }
    }

    package var roomCount: Int { self.registry.withLock { $0.rooms.count } }

    /// Draws from `randomWords`.
    var generator: any RandomNumberGenerator { WordGenerator(words: self.randomWords) }

    private struct WordGenerator: RandomNumberGenerator {
        let words: @Sendable (Int) -> [UInt64]

        mutating func next() -> UInt64 { self.words(1).first ?? 0 }
    }

    /// A text of 16 characters for each word.
    static func text(_ words: [UInt64]) -> String {
        words.map { word in
            let digits = String(word, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }

    // MARK: Messages on their way

    /// Announces messages of a room to loops.
    /// - Parameter origin: the loop that publishes; it takes its own messages without an announcement. `nil` for none.
    /// - Returns: the other loops that are behind. Each calls `LoopRooms.drained` of `origin` when it has caught up.
    @discardableResult
    func announce(_ room: SharedRoom, to loops: [(loop: Int, cost: Int)], from origin: Int?) -> [Int] {
        loops.compactMap { target, cost in
            guard self.inboxes.indices.contains(target) else { return nil }
            if target == origin { return nil }
            let result = self.inboxes[target].add(room, cost: cost, from: origin)
            if result.notifiesReceiver { self.notify(target) }
            return result.isFull ? target : nil
        }
    }

    /// Whether a loop is so far behind that callers without a loop should try again later.
    package var isBehind: Bool { self.inboxes.contains(where: \.isFull) }

    private func notify(_ target: Int) {
        let loop = self.loops[target]
        loop.execute {
            if let rooms = LoopRooms.current(on: loop) { return rooms.messagesArrived() }
            // The `LoopGateway` of that loop is released, and its members with it.
            self.inboxes[target].discard()
        }
    }

    /// Calls the loops that waited for `target`.
    func wake(_ origins: Set<Int>, for target: Int) {
        for origin in origins.sorted() where self.loops.indices.contains(origin) {
            let loop = self.loops[origin]
            loop.execute { LoopRooms.current(on: loop)?.drained(target) }
        }
    }

    /// Cost of the messages announced to loops and not taken yet, in bytes.
    package var bytesUnderWay: Int { self.inboxes.reduce(0) { $0 + $1.cost } }

    // MARK: In a cluster

    /// What the connections of this node to Redis did; `nil` if it shares no rooms.
    package var redis: RedisCounters.Values? { self.cluster?.counters.values }

    /// Whether other nodes have the same rooms.
    package var isShared: Bool { self.cluster != nil }

    /// Index of the loop that receives a room's messages from the cluster, and does what callers without a loop ask.
    func home(of room: String) -> Int {
        // FNV-1a: the same for all nodes, and equal rooms are spread evenly.
        let hash = room.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return Int(hash % UInt64(max(1, self.loops.count)))
    }

    /// Runs `body` with the rooms of a loop, soon.
    func onLoop(_ index: Int, _ body: @escaping @Sendable (LoopRooms) -> Void) {
        guard self.loops.indices.contains(index) else { return }
        let loop = self.loops[index]
        loop.execute { if let rooms = LoopRooms.current(on: loop) { body(rooms) } }
    }
}

/// Rooms that have messages for one loop. Bounded by their cost: a sender that fills the inbox must pause its sources,
/// and is woken when half of it has been taken.
package final class LoopInbox: Sendable {
    /// Cost of the messages, in bytes, from which on the inbox is full.
    package static let highWatermark = 1 << 20
    package static let lowWatermark = highWatermark / 2

    package struct AddResult: Equatable {
        /// The loop must be notified: it has emptied the inbox since it was last notified.
        package var notifiesReceiver: Bool
        package var isFull: Bool
    }

    private struct State {
        var rooms: Deque<SharedRoom> = []
        var listed: Set<ObjectIdentifier> = []
        var cost = 0
        var isAnnounced = false
        /// Loops that wait for space.
        var waiting: Set<Int> = []
    }

    private let state = Mutex(State())

    package init() {}

    /// Cost of the messages in bytes.
    package var cost: Int { self.state.withLock(\.cost) }
    package var isFull: Bool { self.cost >= Self.highWatermark }

    package func add(_ room: SharedRoom, cost: Int, from origin: Int?) -> AddResult {
        self.state.withLock { state in
            if state.listed.insert(ObjectIdentifier(room)).inserted { state.rooms.append(room) }
            state.cost += cost
            let isFull = state.cost >= Self.highWatermark
            if isFull, let origin { state.waiting.insert(origin) }
            defer { state.isAnnounced = true }
            return AddResult(notifiesReceiver: !state.isAnnounced, isFull: isFull)
        }
    }

    /// The next room with messages; `nil` if there is none, and the next `add` notifies the loop.
    package func next() -> SharedRoom? {
        self.state.withLock { state in
            guard let room = state.rooms.popFirst() else {
                state.isAnnounced = false
                return nil
            }
            state.listed.remove(ObjectIdentifier(room))
            return room
        }
    }

    /// The loop took messages of `room`.
    /// - Returns: the loops to wake: they wait for space, and there is space again.
    package func took(_ room: SharedRoom, cost: Int, hasMore: Bool) -> Set<Int> {
        self.state.withLock { state in
            if hasMore, state.listed.insert(ObjectIdentifier(room)).inserted { state.rooms.append(room) }
            state.cost = max(0, state.cost - cost)
            guard state.cost <= Self.lowWatermark else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    func discard() {
        self.state.withLock { $0 = State() }
    }
}
