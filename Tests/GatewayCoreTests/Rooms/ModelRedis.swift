import Cluster
import GatewayCore
import SimulatedNetwork
import StreamTransport
import TestSupport

/// A Redis server on the simulated network, as far as the rooms of a cluster need one, that fails when it is told to.
final class ModelRedis {
    /// What happens to the connection of the next publication.
    enum Fault: CaseIterable {
        /// It ends before the publication is executed.
        case cutBefore
        /// It ends after the publication is executed and before the reply.
        case cutAfter
        /// A subscriber's connection ends in the middle of the publication's message.
        case cutPush
        /// One subscriber does not get the publication's message, and its connection goes on.
        case losePush
    }

    private final class Connection {
        let peer: ScriptedPeer
        /// Of a Redis Cluster.
        let server: Int
        var rest: [UInt8] = []
        var channels: Set<String> = []
        /// The last command was `ASKING`.
        var isAsking = false

        init(_ peer: ScriptedPeer, server: Int) {
            self.peer = peer
            self.server = server
        }

        func send(_ reply: ModelReply) {
            var bytes: [UInt8] = []
            reply.append(to: &bytes)
            self.peer.send(bytes)
        }
    }

    private let network: SimulatedNetwork
    private let host: ScriptedHost
    /// Of each server.
    private let listeners: [ScriptedListener]
    /// `nil` unless it is a Redis Cluster.
    private var slots: ModelRedisSlots?
    private var generator: SeededGenerator
    private var connections: [Connection] = []
    private var acceptedCounts = [0, 0]
    private(set) var store = ModelRedisStore(run: "0")
    /// The state that a failover goes back to.
    private var older = ModelRedisStore(run: "0")
    /// How many publications were ever stored before that state.
    private var olderCount = 0
    private var runs = 0
    private var scripts: [String: String] = [:]
    private var pausedUntil = MonotonicInstant(nanoseconds: 0)
    /// The only server that is paused; `nil` if all are.
    private var pausedServer: Int?
    private var awayUntil = MonotonicInstant(nanoseconds: 0)
    var nextFault: Fault?
    /// Entries that streams lost by failures, or because they began anew.
    private(set) var lost: Set<String> = []
    /// Failures by name, and subscriptions.
    private(set) var counts: [String: Int] = [:]
    /// Whether entries expire soon. The nodes' copies do, too, also those of a stream that Redis has lost.
    var streamsExpire = false
    /// Entries that streams dropped as the policy says.
    private(set) var trimmed: Set<String> = []
    /// Entries that were removed, and did not come back with an older state.
    private(set) var removed: Set<String> = []
    /// Entries that were removed, those that came back with an older state among them.
    private(set) var everRemoved: Set<String> = []
    /// Offsets of entries that were ever removed, by the room's channel.
    private var removedOffsets: [String: Set<Int>] = [:]
    /// All publications that were ever stored, in their order.
    private(set) var everStored: [ModelRedisStore.Stored] = []
    private(set) var complaints: [String] = []

    /// - Parameter isCluster: whether there are two servers, which share the slots.
    init(on network: SimulatedNetwork, seed: UInt64, isCluster: Bool = false) throws {
        self.network = network
        self.generator = SeededGenerator(seed: seed)
        let system = network.makeSystem()
        let host = ScriptedHost(on: system)
        self.host = host
        self.slots = isCluster ? ModelRedisSlots() : nil
        self.listeners = try (0..<(isCluster ? 2 : 1)).map { server in
            try host.listen(at: .ipv4(address: 0x0A03_0001 + UInt32(server), port: 6379))
        }
        system.drive { [weak self] in
            self?.host.turn()
            self?.serve()
        }
    }

    private var now: Int { Int(self.network.now.nanoseconds / 1_000_000) }

    // MARK: Rooms

    static func channel(of room: String) -> String { "sluice:room:{\(room)}" }

    /// The room's stream: its epoch and entries.
    func stream(of room: String) -> (epoch: String, entries: [ModelRedisStore.Entry])? {
        let channel = Self.channel(of: room)
        return self.store.stream(meta: "\(channel):meta", "\(channel):stream")
    }

    func listedCount(in room: String) -> Int {
        self.store.listedCount("\(Self.channel(of: room)):presence", now: self.now)
    }

    /// Whether the room's stream may have dropped the publication with this position, as its policy says.
    func mayHaveDropped(_ position: (epoch: String, offset: Int), of room: String) -> Bool {
        guard self.streamsExpire || !self.trimmed.isEmpty || self.hasExpiredEntries else { return false }
        let channel = Self.channel(of: room)
        let kept = self.store.offsets(
            of: "\(channel):stream", meta: "\(channel):meta", epoch: position.epoch, now: self.now + 1)
        // Nodes do not know yet that Redis has gone back.
        guard let kept else { return true }
        return !kept.contains(position.offset)
    }

    /// They are removed when the next script is executed.
    private var hasExpiredEntries: Bool {
        var later = self.store
        later.expire(self.now + 1)
        return later.entryCount < self.store.entryCount
    }

    func removedOffsets(of room: String) -> Set<Int> { self.removedOffsets[Self.channel(of: room)] ?? [] }

    // MARK: Failures

    func cutOne() {
        self.connections.randomElement(using: &self.generator).map { self.cut($0) }
        self.count("cut")
    }

    func cutAll() {
        for connection in self.connections { self.cut(connection) }
        self.count("cutAll")
    }

    /// Answers nothing for a while.
    /// - Parameter server: of a Redis Cluster, the only one that does not; `nil` for all.
    func pause(for duration: Duration, server: Int? = nil) {
        self.pausedUntil = self.network.now.advanced(by: duration)
        self.pausedServer = server
        self.count("pause")
    }

    func forgetScripts() {
        self.scripts = [:]
        self.count("forgetScripts")
    }

    /// What it tells of its append-only file; `nil` if the user may not ask.
    var appendFsync: String?

    /// Whether the connection of the next question for its settings ends without an answer.
    var cutsAtNextConfig = false

    /// Begins an append-only file.
    func beginAppendOnlyFile() {
        self.store.isDurable = true
        self.count("beginAppendOnlyFile")
    }

    /// Has nothing any more, as after `FLUSHALL`.
    func forgetKeys() {
        self.lost.formUnion(self.store.kept)
        self.store.forgetKeys()
    }

    func saveState() {
        self.older = self.store
        self.olderCount = self.everStored.count
    }

    func restartEmpty(away duration: Duration) {
        self.restart(with: ModelRedisStore(run: ""), knowing: 0, away: duration)
        self.count("restartEmpty")
    }

    /// Another server takes over, without what it had not received.
    func failOver(away duration: Duration) {
        self.older.isDurable = false
        self.restart(with: self.older, knowing: self.olderCount, away: duration)
        self.count("failOver")
    }

    /// Starts again with all that it had.
    func restart(away duration: Duration) {
        self.restart(with: self.store, knowing: self.everStored.count, away: duration)
        self.count("restart")
    }

    /// Starts again with an append-only file that lacks what came after the saved state, as after a crash of its machine.
    func restartWithoutTheEnd() {
        self.older.isDurable = self.store.isDurable
        self.restart(with: self.older, knowing: self.olderCount, away: .zero)
    }

    /// - Parameter count: of the publications that were stored before `state`. Of the others nothing is left, not even the
    ///   results of their idempotency keys.
    private func restart(with state: ModelRedisStore, knowing count: Int, away duration: Duration) {
        self.runs += 1
        for connection in self.connections { self.cut(connection) }
        let before = self.store.kept
        self.store = state
        self.store.run = "\(self.runs)"
        self.lost.formUnion(before.union(self.everStored.dropFirst(count).map(\.envelope)).subtracting(self.store.kept))
        self.removed.subtract(self.store.kept)
        self.saveState()
        self.scripts = [:]
        self.awayUntil = self.network.now.advanced(by: duration)
    }

    // MARK: Migrations

    /// Begins to migrate the slot of a room to the other server, goes on with a key, or ends it after the last one.
    /// - Parameter suffix: of the key; `nil` for any.
    func migrate(_ room: String, key suffix: String? = nil) {
        let channel = Self.channel(of: room)
        let slot = ModelRedisSlots.slot(of: channel)
        guard self.slots?.isMigrating(slot) == true else {
            self.slots?.begin(slot)
            return self.count("migrations")
        }
        let keys = [":meta", ":stream", ":presence", ":expiry"].map { channel + $0 }
        let rest = keys.filter { self.store.has($0) && self.slots?.hasMoved($0) == false }
        let next = suffix.map { channel + $0 } ?? rest.randomElement(using: &self.generator)
        if let next { self.slots?.move(next) } else { self.endMigration(of: room) }
    }

    /// The next server takes the slot, and the former one ends its subscriptions.
    func endMigration(of room: String) {
        let channel = Self.channel(of: room)
        self.slots?.end(ModelRedisSlots.slot(of: channel))
        for connection in self.connections where self.slots?.refusal(ofChannel: channel, at: connection.server) != nil {
            guard connection.channels.remove(channel) != nil else { continue }
            connection.send(
                .push([.blob("sunsubscribe"), .blob(channel), .integer(connection.channels.count)]))
        }
    }

    /// Ends all failures.
    func heal() {
        self.nextFault = nil
        self.pausedUntil = self.network.now
        self.awayUntil = self.network.now
        self.serve()
    }

    func close() { self.host.close() }

    private func cut(_ connection: Connection) {
        // With FIN or RST; what was sent before may arrive.
        if Bool.random(using: &self.generator) { connection.peer.reset() } else { connection.peer.close() }
        self.connections.removeAll { $0 === connection }
    }

    private func count(_ name: String) { self.counts[name, default: 0] += 1 }

    // MARK: Serving

    func serve() {
        for (server, listener) in self.listeners.enumerated() {
            let accepted = listener.accepted
            for peer in accepted.dropFirst(self.acceptedCounts[server]) {
                self.connections.append(Connection(peer, server: server))
            }
            self.acceptedCounts[server] = accepted.count
        }
        guard self.network.now >= self.awayUntil else {
            for connection in self.connections { self.cut(connection) }
            return
        }
        let isPaused = self.network.now < self.pausedUntil
        if isPaused, self.pausedServer == nil { return }
        for connection in self.connections where !isPaused || connection.server != self.pausedServer {
            self.serve(connection)
        }
        self.connections.removeAll { $0.peer.isClosed }
    }

    private func serve(_ connection: Connection) {
        let received = connection.peer.takeReceived()
        if connection.peer.sawEnd || connection.peer.failure != nil { connection.peer.close() }
        connection.rest += received
        var position = 0
        while !connection.peer.isClosed, let words = Self.command(in: connection.rest, at: &position) {
            if let reply = self.reply(to: words, on: connection), !connection.peer.isClosed { connection.send(reply) }
        }
        connection.rest.removeFirst(position)
    }

    private func reply(to words: [String], on connection: Connection) -> ModelReply? {
        if words[0] == "ASKING" {
            connection.isAsking = true
            return .simple("OK")
        }
        let refusal = self.refusal(of: words, on: connection)
        connection.isAsking = false
        if let refusal { return .error(refusal) }
        switch words[0] {
        case "HELLO":
            return .map([
                ("server", .blob("redis")), ("version", .blob("7.0.15")), ("proto", .integer(3)),
                ("mode", .blob("standalone")), ("role", .blob("master")),
            ])
        case "SCRIPT": return .blob(self.load(words[2]))
        case "EVAL": return self.run(self.load(words[1]), words, on: connection)
        case "EVALSHA":
            guard self.scripts[words[1]] != nil else { return .error("NOSCRIPT No matching script.") }
            return self.run(words[1], words, on: connection)
        case "SUBSCRIBE", "UNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
            for channel in words.dropFirst() { self.subscribe(connection, to: channel, words[0].lowercased()) }
            return nil
        case "PUBLISH", "SPUBLISH":
            let message = ModelRedisStore.Message(channel: words[1], payload: words[2])
            self.deliver(message, nil, by: connection.server)
            return .integer(1)
        case "CLUSTER": return self.slots?.shards ?? .error("ERR This instance has cluster support disabled")
        case "INFO": return .blob(self.info)
        case "CONFIG":
            self.count("config")
            if self.cutsAtNextConfig {
                self.cutsAtNextConfig = false
                self.cut(connection)
                return nil
            }
            return self.appendFsync.map { .map([("appendfsync", .blob($0))]) } ?? .error("NOPERM")
        case "PING": return .simple("PONG")
        case "PEXPIRE":
            self.expire(self.now)
            return .integer(self.store.extend(words[1], by: Int(words[2]) ?? 0, now: self.now) ? 1 : 0)
        case "ZREM": return .integer(self.store.removeClient(words[2], user: words[1]) ? 1 : 0)
        default:
            self.complaints.append("the model does not know \(words[0])")
            return .error("ERR unknown command '\(words[0])'")
        }
    }

    private func refusal(of words: [String], on connection: Connection) -> String? {
        guard self.slots != nil else { return nil }
        switch words[0] {
        case "EVAL", "EVALSHA", "PEXPIRE", "ZREM":
            let keys = words[0].hasPrefix("EVAL") ? Array(words[3..<(3 + (Int(words[2]) ?? 0))]) : [words[1]]
            let store = self.store
            let refusal = self.slots?.refusal(
                of: keys, at: connection.server, isAsking: connection.isAsking, exists: store.has)
            if let word = refusal?.split(separator: " ").first { self.count(String(word)) }
            return refusal
        case "SPUBLISH", "SSUBSCRIBE": return self.slots?.refusal(ofChannel: words[1], at: connection.server)
        default: return nil
        }
    }

    private var info: String {
        let lines = [
            "# Server", "redis_version:7.0.15", "run_id:\(self.store.run)", "tcp_port:6379", "", "# Persistence",
            "aof_enabled:\(self.store.isDurable ? 1 : 0)", "", "# Replication",
            "master_replid2:\(String(repeating: "0", count: 40))", "",
        ]
        return lines.joined(separator: "\r\n")
    }

    private func subscribe(_ connection: Connection, to channel: String, _ command: String) {
        let isSubscribed = !command.hasSuffix("unsubscribe")
        if isSubscribed { connection.channels.insert(channel) } else { connection.channels.remove(channel) }
        if isSubscribed { self.count("subscribe") }
        connection.send(
            .push([
                .blob(command), .blob(channel),
                .integer(connection.channels.count),
            ]))
    }

    // MARK: Scripts

    private func load(_ source: String) -> String {
        let digest = RedisScript(source).digest
        self.scripts[digest] = source
        return digest
    }

    private func run(_ digest: String, _ words: [String], on connection: Connection) -> ModelReply? {
        let isRemoval = digest == RoomScripts.remove.digest
        var fault = digest == RoomScripts.publish.digest || isRemoval ? self.nextFault.take() : nil
        // Redis loses messages with their connection alone. What else they are lost by, the next publication's offset shows.
        if isRemoval, fault == .losePush { fault = .cutPush }
        if fault == .cutBefore {
            self.cut(connection)
            self.count("cutBefore")
            return nil
        }
        let keyCount = Int(words[2]) ?? 0
        let (keys, arguments) = (Array(words[3..<(3 + keyCount)]), Array(words[(3 + keyCount)...]))
        let now = self.now
        self.expire(now)
        let before = self.store
        guard let outcome = self.store.run(digest, keys: keys, arguments, now: now) else {
            self.complaints.append("the model does not know the script \(digest)")
            return .error("ERR unknown script")
        }
        if digest == RoomScripts.list.digest { self.count("list") }
        if digest == RoomScripts.read.digest { self.count("read") }
        outcome.stored.map { self.everStored.append($0) }
        if before.entryCount + (outcome.stored?.epoch.isEmpty == false ? 1 : 0) > self.store.entryCount {
            self.noteMissing(before, isRemoval: isRemoval, keys)
        }
        if let message = outcome.message { self.deliver(message, fault, by: connection.server) }
        guard fault == .cutAfter else { return outcome.reply }
        self.cut(connection)
        self.count("cutAfter")
        return nil
    }

    private func expire(_ now: Int) {
        let before = self.store
        self.store.expire(now)
        guard before.entryCount > self.store.entryCount else { return }
        self.trimmed.formUnion(before.kept.subtracting(self.store.kept))
    }

    /// Notes the entries that a script took from the streams.
    private func noteMissing(_ before: ModelRedisStore, isRemoval: Bool, _ keys: [String]) {
        let missing = before.kept.subtracting(self.store.kept)
        guard isRemoval, let stream = before.stream(meta: keys[0], keys[1]) else {
            // Offsets go on where a stream was trimmed.
            if self.store.newestOffset(keys[1]) > before.newestOffset(keys[1]) {
                self.trimmed.formUnion(missing)
                return self.count("trimmed")
            }
            return self.lost.formUnion(missing)
        }
        self.removed.formUnion(missing)
        self.everRemoved.formUnion(missing)
        let offsets = stream.entries.filter { missing.contains($0.envelope) }.map(\.offset)
        self.removedOffsets[String(keys[1].dropLast(":stream".count)), default: []].formUnion(offsets)
        self.count("removals")
    }

    private func deliver(_ message: ModelRedisStore.Message, _ fault: Fault?, by server: Int) {
        var bytes: [UInt8] = []
        ModelReply.push([
            .blob(self.slots == nil ? "message" : "smessage"), .blob(message.channel), .blob(message.payload),
        ]).append(to: &bytes)
        let subscribers = self.connections.filter {
            $0.server == server && $0.channels.contains(message.channel)
        }
        let hitsSubscriber = fault == .cutPush || fault == .losePush
        let hit = hitsSubscriber ? subscribers.randomElement(using: &self.generator) : nil
        for subscriber in subscribers {
            guard subscriber === hit else {
                subscriber.peer.send(bytes)
                continue
            }
            self.count(fault == .cutPush ? "cutPush" : "losePush")
            guard fault == .cutPush else { continue }
            subscriber.peer.send(Array(bytes.prefix(Int.random(in: 0..<bytes.count, using: &self.generator))))
            self.cut(subscriber)
        }
    }

    /// Takes an array of blob strings; `nil` while it is not complete.
    private static func command(in bytes: [UInt8], at position: inout Int) -> [String]? {
        var index = position
        func line() -> Int? {
            guard let end = bytes[index...].firstIndex(of: 0x0A) else { return nil }
            defer { index = end + 1 }
            return Int(String(decoding: bytes[(index + 1)..<(end - 1)], as: UTF8.self))
        }
        guard let count = line() else { return nil }
        var words: [String] = []
        for _ in 0..<count {
            guard let length = line(), bytes.count >= index + length + 2 else { return nil }
            var word = String.UnicodeScalarView()
            word.append(contentsOf: bytes[index..<(index + length)].lazy.map { Unicode.Scalar($0) })
            words.append(String(word))
            index += length + 2
        }
        position = index
        return words
    }
}
