import Cluster
import DequeModule
import GatewayConfiguration
import Rooms
import StreamTransport
import Synchronization
import WebSocketProtocol
import WebTokens

/// All rooms of the gateway, and the distribution of their messages to the loops.
package final class RoomHub: Sendable {
    private struct Registry {
        private(set) var rooms: [String: SharedRoom] = [:]
        /// Callers that hold a room at the moment, its members among them; such a room stays.
        private var uses: [String: Int] = [:]
        /// Rooms without a holder, by the client that made them.
        private var unused: [RoomClientKey: Int] = [:]
        /// When all rooms may be visited again because there are as many as there may be.
        var nextSweep: Duration = .zero

        /// Removes up to `count` rooms without members whose history has expired.
        /// - Parameter client: whose rooms are removed as early as if the gateway had many.
        mutating func sweep(_ count: Int, limit: Int, for client: RoomClientKey? = nil, now: Duration) {
            let uses = self.uses
            let isCrowded = self.rooms.count >= limit / 2
            let over = self.rooms.values.lazy.filter { room in
                let isOwn = client != nil && room.maker == client
                return uses[room.name] == nil && room.isDisposable(now: now, isCrowded: isCrowded || isOwn)
            }
            for room in over.prefix(count) {
                self.remove(room)
                self.addUnused(room, -1)
            }
        }

        /// One more use of a room, which is registered if none of its name is.
        mutating func use(_ room: SharedRoom) -> SharedRoom {
            let registered = self.rooms[room.name]
            if let registered, self.uses[room.name] == nil { self.addUnused(registered, -1) }
            self.uses[room.name, default: 0] += 1
            self.rooms[room.name] = registered ?? room
            return registered ?? room
        }

        mutating func release(_ room: SharedRoom, now: Duration) {
            guard let uses = self.uses[room.name], let room = self.rooms[room.name] else { return }
            self.uses[room.name] = uses > 1 ? uses - 1 : nil
            guard uses == 1 else { return }
            if room.isDisposable(now: now) { self.remove(room) } else { self.addUnused(room, 1) }
        }

        private mutating func remove(_ room: SharedRoom) {
            self.rooms[room.name] = nil
            room.end()
        }

        private mutating func addUnused(_ room: SharedRoom, _ change: Int) {
            guard let maker = room.maker else { return }
            let count = self.unused[maker, default: 0] + change
            self.unused[maker] = count > 0 ? count : nil
        }

        /// Why a further room is not made.
        func refusal(_ client: RoomClientKey?, _ limits: Limits) -> AcquireError? {
            if self.rooms.count >= limits.rooms { return .tooManyRooms }
            guard let client, self.unused[client, default: 0] >= limits.unusedRooms else { return nil }
            return .tooManyRoomsOfClient
        }
    }

    private struct Limits {
        let rooms: Int
        /// Of one client.
        let unusedRooms: Int

        init(_ settings: RoomSettings) {
            self.rooms = settings.maximumRooms
            self.unusedRooms = min(settings.maximumRoomsPerClient, max(1, settings.maximumRooms / 2))
        }
    }

    /// Why a room cannot be used.
    package enum AcquireError: Error, Equatable {
        /// There are as many rooms as `max-total` allows.
        case tooManyRooms
        /// The client has made as many rooms without members as `max-total-per-client` allows.
        case tooManyRoomsOfClient
    }

    /// Rooms removed in one sweep, so that the registry is not locked for longer than some milliseconds.
    private static let sweepLimit = 10_000
    /// Time between two sweeps for a further room.
    private static let crowdedSweepInterval: Duration = .seconds(1)

    private let registry = Mutex(Registry())
    private let settings: Mutex<RoomSettings>
    private let verifier = Mutex<TokenVerifier?>(nil)
    private let forwarder = Mutex<CommandForwarder?>(nil)
    private let loops: [Loop]
    let inboxes: [LoopInbox]
    package let users = UserRegistry()
    /// Of the clients that one answer lists, in bytes, as `ClientInfo.estimatedSize` counts them.
    static let presenceLimit = 16 << 20

    package let moderation = Moderation()
    package let counters = RoomCounters()
    let emulatedInboxes = EmulatedInboxes()
    package let clientRates = ClientRates()
    private let historyMemory: HistoryMemory
    private let epochs: RoomEpochs
    /// Epochs and identifiers; replaced by seeded words in simulations.
    let randomWords: @Sendable (Int) -> [UInt64]

    let buffers: RoomBuffers

    /// How rooms are shared with other nodes; `nil` keeps them in this process.
    let cluster: RoomCluster?
    private let version: String

    /// - Parameter version: of the gateway, for its clients.
    package init(
        loops: [Loop], settings: RoomSettings = RoomSettings(), cluster: RoomCluster? = nil,
        buffers: RoomBuffers = RoomBuffers(), version: String = "", randomWords: (@Sendable (Int) -> [UInt64])? = nil
    ) {
        self.loops = loops
        self.cluster = cluster
        self.version = version
        self.settings = Mutex(settings)
        self.historyMemory = HistoryMemory(limit: settings.maximumHistoryTotal)
        self.buffers = buffers
        self.inboxes = loops.map { _ in LoopInbox(limit: buffers.inbox) }
        let randomWords = randomWords ?? { Machine.randomWords($0) }
        self.randomWords = randomWords
        self.epochs = RoomEpochs { Self.text(randomWords(1)) }
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
    /// - Throws: 414 for a name longer than `max-name-length`, 400 for one with control characters or not in NFC.
    func checkName(_ matched: MatchedRequest) throws(HandshakeRefusal) {
        guard matched.route.configuration.target == .chat, let name = matched.match.value(of: "room") else { return }
        let settings = self.settings.withLock(\.client)
        let limit = settings.maximumChannelLength
        guard name.utf8.count <= limit else {
            throw HandshakeRefusal(
                status: 414, explanation: "The name of a room has at most \(limit) bytes; use a shorter one.")
        }
        guard settings.allowsName(name) else {
            throw HandshakeRefusal(
                status: 400,
                explanation:
                    "The name of a room has no control characters, and is in Unicode's form NFC; use another one.")
        }
    }

    // MARK: Rooms

    /// The room of this name, made on first use, until `release`. Loops call `LoopRooms.acquire`.
    /// - Parameter client: that uses the room; `nil` for the server itself, whose rooms are not counted.
    package func acquire(_ name: String, for client: RoomClientKey? = nil) throws(AcquireError) -> SharedRoom {
        if let room = self.acquireExisting(name) { return room }
        let (policy, limits) = self.settings.withLock { ($0.policy(of: name) ?? .open, Limits($0)) }
        let now = self.now
        let result = self.registry.withLock { registry -> Result<SharedRoom, AcquireError> in
            if let room = registry.rooms[name] { return .success(registry.use(room)) }
            if registry.refusal(client, limits) != nil, now >= registry.nextSweep {
                registry.nextSweep = now + Self.crowdedSweepInterval
                registry.sweep(Self.sweepLimit, limit: limits.rooms, for: client, now: now)
            }
            if let refusal = registry.refusal(client, limits) { return .failure(refusal) }
            return .success(registry.use(self.make(name, policy, for: client)))
        }
        if case .failure(let error) = result { self.counters.addRefusedRoom(error) }
        return try result.get()
    }

    private func make(_ name: String, _ policy: RoomPolicy, for client: RoomClientKey?) -> SharedRoom {
        SharedRoom(
            name: name, policy: policy, maker: client, isLocal: self.cluster == nil, memory: self.historyMemory,
            epochs: self.epochs)
    }

    /// One more use of a room that the caller has, until `release`.
    func acquire(_ room: SharedRoom) -> SharedRoom {
        self.registry.withLock { $0.use(room) }
    }

    /// The room of this name until `release`; `nil` if it has no members and keeps nothing.
    package func acquireExisting(_ name: String) -> SharedRoom? {
        self.registry.withLock { registry in registry.rooms[name].map { registry.use($0) } }
    }

    package func release(_ room: SharedRoom) {
        let now = self.now
        self.registry.withLock { $0.release(room, now: now) }
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

    /// Counters of this node's connections to Redis; `nil` if it shares no rooms.
    package var redis: RedisCounters.Values? { self.cluster?.counters.values }

    /// Sends commands of clients without a WebSocket to other nodes; `nil` without a cluster.
    package var commandForwarder: CommandForwarder? {
        get { self.forwarder.withLock(\.self) }
        set { self.forwarder.withLock { $0 = newValue } }
    }

    /// The node that clients without a WebSocket name with their commands.
    var nodeName: String { self.commandForwarder?.node ?? self.cluster?.node ?? "sluice" }

    /// Whether other nodes have the same rooms.
    package var isShared: Bool { self.cluster != nil }

    /// The client of a member without a protocol. Connections are numbered by each node, so in a cluster its name follows.
    func plainClient(ofConnection number: UInt64) -> String {
        self.cluster.map { "\(number)@\($0.node)" } ?? "\(number)"
    }

    /// - Parameter client: of a member without a protocol on this node.
    static func connection(ofPlainClient client: String) -> UInt64? { UInt64(client.prefix { $0 != "@" }) }

    /// Index of the loop that receives a room's messages from the cluster, and does what callers without a loop ask.
    package func home(of room: String) -> Int {
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
    package struct AddResult: Equatable {
        /// The loop must be notified: it has emptied the inbox since it was last notified.
        package var notifiesReceiver: Bool
        package var isFull: Bool
    }

    /// Messages of a room that the loop has not taken.
    private struct Entry {
        /// In bytes.
        var cost = 0
        var isListed = false

        /// - Returns: whether the room was listed before.
        mutating func list(adding cost: Int) -> Bool {
            self.cost += cost
            defer { self.isListed = true }
            return self.isListed
        }
    }

    private struct State {
        /// The rooms that are listed, in the order of their first message.
        var rooms: Deque<SharedRoom> = []
        /// Until the loop has taken everything from the room.
        var entries: [ObjectIdentifier: Entry] = [:]
        /// Of all entries, in bytes.
        var cost = 0
        var isAnnounced = false
        /// Loops that wait for space.
        var waiting: Set<Int> = []

        mutating func list(_ room: SharedRoom, adding cost: Int) {
            let wasListed = self.entries[ObjectIdentifier(room), default: Entry()].list(adding: cost)
            if !wasListed { self.rooms.append(room) }
            self.cost += cost
        }
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: cost of the messages, in bytes, from which on the inbox is full.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Cost of the messages in bytes.
    package var cost: Int { self.state.withLock(\.cost) }
    package var isFull: Bool { self.cost >= self.limit }

    package func add(_ room: SharedRoom, cost: Int, from origin: Int?) -> AddResult {
        self.state.withLock { state in
            state.list(room, adding: cost)
            let isFull = state.cost >= self.limit
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
            state.entries[ObjectIdentifier(room)]?.isListed = false
            return room
        }
    }

    /// The loop took messages of `room`. A room that has nothing more costs nothing, whatever was announced: messages
    /// are dropped when the loop's last member leaves.
    /// - Returns: the loops to wake: they wait for space, and there is space again.
    package func took(_ room: SharedRoom, cost: Int, hasMore: Bool) -> Set<Int> {
        self.state.withLock { state in
            if hasMore { state.list(room, adding: 0) }
            let key = ObjectIdentifier(room)
            // Listed: it has more, or another loop added messages meanwhile.
            let entry = state.entries[key] ?? Entry()
            let paid = entry.isListed ? min(cost, entry.cost) : entry.cost
            state.entries[key] = entry.isListed ? Entry(cost: entry.cost - paid, isListed: true) : nil
            state.cost -= paid
            guard state.cost <= self.limit / 2 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    func discard() {
        self.state.withLock { $0 = State() }
    }
}
