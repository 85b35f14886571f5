import Foundation
import GatewayCore
import Rooms
import SimulatedNetwork
import TestSupport

/// One seed's cluster: nodes, a Redis that fails, clients that publish, vanish and come back, and what must be true at the
/// end.
final class ClusterLoad {
    private static let rooms = ["a", "b"]
    private static let actions = 80

    /// What the rooms keep.
    private enum Kind: Equatable {
        /// More than is ever published.
        case all
        /// Few publications, or for a short time.
        case few
        /// Few publications, of which clients that come back get the newest.
        case cache
        /// Nothing. Nodes may go on without Redis.
        case nothing

        init(seed: UInt64) {
            // Even seeds have a client with a filter.
            switch (seed % 8, seed / 8 % 2) {
            case (5, 0), (6, 1): self = .few
            case (5, 1), (6, 0): self = .cache
            case (7, _): self = .nothing
            default: self = .all
            }
        }
    }

    private let kind: Kind
    private let scene: ClusterScene
    private let control = ClusterOperator()
    private var generator: SeededGenerator
    /// Chooses what migrates; `nil` without a Redis Cluster.
    private var migrations: SeededGenerator?
    private var published = 0
    private(set) var counts: [String: Int] = [:]
    private(set) var complaints: [String] = []

    init(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        self.migrations = seed % 25 == 24 ? SeededGenerator(seed: seed) : nil
        let loops = (0..<Int.random(in: 2...3, using: &generator)).map { _ in Int.random(in: 1...2, using: &generator) }
        self.scene = try ClusterScene(
            loops: loops, clients: Int.random(in: 4...7, using: &generator), receivers: Self.receivers(seed: seed),
            rooms: Self.rooms,
            plainMembers: (0..<Int.random(in: 2...3, using: &generator)).map { Self.rooms[$0 % Self.rooms.count] },
            options: Self.options(seed: seed, nodes: loops.count), seed: generator.next())
        self.kind = Kind(seed: seed)
        self.generator = generator
        // Operators' publications have tags.
        if seed.isMultiple(of: 2) {
            self.scene.clients.last?.wanted = { [unowned self] in self.odd(in: $0, epoch: $1) }
        }
    }

    /// Clients that only receive. Each fourth seed has none, as those have that failed before there were any.
    private static func receivers(seed: UInt64) -> [ClusterClient.Transport] {
        var generator = SeededGenerator(seed: seed)
        return (0..<Int.random(in: 1...2, using: &generator)).compactMap { _ in
            seed.isMultiple(of: 4) ? nil : [.events, .lines].randomElement(using: &generator)
        }
    }

    private static func options(seed: UInt64, nodes: Int) -> ClusterScene.Options {
        // Nodes read histories in parts of about ten publications.
        var options = ClusterScene.Options(
            historyPage: seed.isMultiple(of: 3) ? 4000 : nil, isRedisCluster: seed % 25 == 24)
        var generator = SeededGenerator(seed: seed)
        let size: Int
        switch Kind(seed: seed) {
        case .all: return options
        case .few, .cache:
            size = Int.random(in: 1...12, using: &generator)
            if Bool.random(using: &generator) {
                options.historyTime = "\(Int.random(in: 1...9, using: &generator))s"
            }
            if Kind(seed: seed) == .cache { options.recovery = .cache }
        case .nothing:
            size = 0
            options.recovery = .off
            options.deliversAlone = Bool.random(using: &generator)
        }
        options.historySizes = Array(repeating: size, count: nodes)
        return options
    }

    private var clients: [ClusterClient] { self.scene.clients }
    private var redis: ModelRedis { self.scene.redis }

    private func count(_ name: String) { self.counts[name, default: 0] += 1 }

    // MARK: Running

    func run() throws {
        for client in self.clients { try self.scene.connect(client, to: self.drawNode()) }
        for member in self.scene.plainMembers { try self.scene.connect(member, to: self.drawNode()) }
        self.scene.pass(.milliseconds(50))
        for _ in 0..<Self.actions {
            try self.act()
            self.migrate()
            self.scene.pass(self.drawTime())
        }
        for room in Self.rooms { self.redis.endMigration(of: room) }
        self.redis.heal()
        try self.gather()
        self.repeatRequests()
        try self.publishLast()
        if self.kind == .nothing {
            self.judgeUnkept()
        } else {
            try self.judgeRemovals()
            self.judge()
        }
        self.finish()
    }

    private func drawTime() -> Duration {
        switch Int.random(in: 0..<20, using: &self.generator) {
        case 0: .milliseconds(Int.random(in: 100...4000, using: &self.generator))
        case 1...4: .milliseconds(Int.random(in: 3...100, using: &self.generator))
        default: .microseconds(Int.random(in: 0...3000, using: &self.generator))
        }
    }

    private func act() throws {
        let client = self.clients[Int.random(in: 0..<self.clients.count, using: &self.generator)]
        switch Int.random(in: 0..<130, using: &self.generator) {
        case ..<10:
            client.vanish()
        case ..<30:
            try self.scene.connect(client, to: self.drawNode())
        case ..<36:
            for client in self.clients { client.resubscribe() }
        case ..<46:
            self.failRedis()
        case ..<48:
            try self.killNode()
        case ..<68:
            self.operate()
        case ..<82:
            try self.act(asPlain: self.scene.plainMembers.randomElement(using: &self.generator))
        default:
            for _ in 0..<Int.random(in: 1...3, using: &self.generator) { self.publish(by: client) }
        }
    }

    private func operate() {
        let (node, room) = (self.drawNode(), self.drawRoom())
        let gateway = self.scene.nodes[node]
        switch Int.random(in: 0..<20, using: &self.generator) {
        case ..<9:
            self.published += 1
            self.control.publish(self.published, in: room, on: gateway, node: node)
        case ..<15:
            guard let request = self.control.requests.randomElement(using: &self.generator) else { return }
            self.control.repeatRequest(request, on: gateway, node: node)
        case ..<19:
            let entries = self.redis.stream(of: room)?.entries ?? []
            // Those that somebody may yet recover, among others.
            guard let entry = entries.suffix(8).randomElement(using: &self.generator) else { return }
            self.control.remove(entry.offset, from: room, on: gateway)
        default:
            self.control.remove(nil, from: room, on: gateway)
        }
    }

    private func act(asPlain member: ClusterPlainMember?) throws {
        guard let member else { return }
        switch Int.random(in: 0..<14, using: &self.generator) {
        case ..<2: member.vanish()
        case ..<5: try self.scene.connect(member, to: self.drawNode())
        default: if member.publish(self.published + 1) { self.published += 1 }
        }
    }

    private func failRedis() {
        let duration = Duration.milliseconds(Int.random(in: 1...3000, using: &self.generator))
        switch Int.random(in: 0..<26, using: &self.generator) {
        case 0...10: self.redis.nextFault = ModelRedis.Fault.allCases.randomElement(using: &self.generator)
        case 11...13: self.redis.cutOne()
        case 14: self.redis.cutAll()
        case 15...17: self.redis.pause(for: duration * 3)
        case 18: self.redis.forgetScripts()
        case 19...21: self.redis.saveState()
        case 22: self.redis.restartEmpty(away: duration)
        case 23: self.redis.restart(away: duration)
        default: self.redis.failOver(away: duration)
        }
    }

    /// Goes on with a migration, in one of three steps.
    private func migrate() {
        guard var generator = self.migrations else { return }
        if Int.random(in: 0..<3, using: &generator) == 0, let room = Self.rooms.randomElement(using: &generator) {
            self.redis.migrate(room)
        }
        self.migrations = generator
    }

    private func killNode() throws {
        let node = self.drawNode()
        try self.scene.replaceNode(node)
        self.control.nodeWasKilled(node)
        self.count("kills")
    }

    private func drawNode() -> Int { Int.random(in: 0..<self.scene.nodes.count, using: &self.generator) }

    private func drawRoom() -> String { Self.rooms[Int.random(in: 0..<Self.rooms.count, using: &self.generator)] }

    private func publish(by client: ClusterClient) {
        if client.publish(self.published + 1, in: self.drawRoom()) { self.published += 1 }
    }

    // MARK: The end

    /// Lets all clients come back.
    private func gather() throws {
        guard try !self.scene.gather(on: { self.drawNode() }) else { return }
        for client in self.clients where !client.isInAllRooms {
            self.complaints.append("client \(client.name) is in \(client.subscribed) only")
        }
    }

    /// Repeats publications with a key until all are acknowledged.
    private func repeatRequests() {
        for _ in 0..<20 {
            let rest = self.control.requests.filter { !$0.isAcknowledged }
            guard !rest.isEmpty else { return }
            for request in rest {
                let node = self.drawNode()
                self.control.repeatRequest(request, on: self.scene.nodes[node], node: node)
            }
            self.scene.pass(.milliseconds(500))
        }
        let rest = self.control.requests.filter { !$0.isAcknowledged }.map(\.number)
        if !rest.isEmpty { self.complaints.append("not acknowledged: \(rest)") }
    }

    /// One more publication in each room, which all must get.
    private func publishLast() throws {
        // A node may not have noticed yet that the room's stream is another one.
        self.scene.pass(.seconds(12))
        try self.gather()
        self.askForPresence()
        for room in Self.rooms {
            guard self.clients[0].publish(self.published + 1, in: room) else {
                self.complaints.append("client 0 has no connection")
                continue
            }
            self.published += 1
            self.scene.pass(.milliseconds(100))
            // It shows a node that it missed the one before. If that was removed, its clients come again, and are told so.
            try self.gather()
            let newest = self.redis.stream(of: room)?.entries.last?.offset
            for client in self.clients
            where client.received[room]?.last?.number != self.published
                && !client.isToldOfGap(in: room, upTo: newest)
                && !(client.wanted != nil && client.hasAllWanted(in: room, upTo: newest))
            {
                self.complaints.append("client \(client.name) did not get the last publication in \(room)")
            }
            for member in self.scene.plainMembers
            where member.room == room && member.stays.last?.received.last != self.published {
                self.complaints.append("plain member \(member.name) did not get the last publication in \(room)")
            }
        }
    }

    /// All nodes list all clients, and none of those that nodes left behind when they were killed.
    private func askForPresence() {
        for client in self.clients { client.askForPresence() }
        self.scene.pass(.milliseconds(100))
        for client in self.clients where client.transport == .webSocket {
            for room in Self.rooms
            where client.listed[room] != self.clients.count + self.scene.plainMembers.count(where: { $0.room == room })
            {
                self.complaints.append("client \(client.name) sees \(client.listed[room] ?? 0) in \(room)")
            }
        }
    }

    private func finish() {
        for client in self.clients { self.complaints += client.complaints }
        for member in self.scene.plainMembers { self.complaints += member.complaints }
        let parts =
            self.clients.map(\.counts) + self.scene.plainMembers.map(\.counts)
            + [self.control.counts, self.redis.counts, ["published": self.published]]
        for counts in parts { self.counts.merge(counts, uniquingKeysWith: +) }
        self.complaints += self.redis.complaints
        self.complaints += self.scene.network.misuses
        self.scene.pass(.seconds(1))
        for underWay in self.scene.nodes.map(\.shared.hub.bytesUnderWay) where underWay != 0 {
            self.complaints.append("\(underWay) bytes of messages still count as being on their way")
        }
        self.scene.finish()
    }

    // MARK: Judging

    private func judge() {
        let lost = Self.numbers(self.redis.lost)
        self.count(self.kind == .cache ? "cache loads" : self.kind == .few ? "few loads" : "all loads")
        self.judgeStorage(lost)
        self.judgeRequests(lost)
        for room in Self.rooms { self.judgeOrder(room) }
        // A node that read the room between a removal and the return of an older state had not what was removed.
        // The same holds for what Redis has dropped.
        let missing = lost.union(Self.numbers(self.redis.everRemoved)).union(Self.numbers(self.redis.trimmed))
        for member in self.scene.plainMembers {
            let channel = ModelRedis.channel(of: member.room)
            let order = self.redis.everStored.filter { $0.channel == channel }.compactMap { stored in
                Self.number(in: stored.envelope).map { (number: $0, epoch: stored.epoch) }
            }
            member.judge(order, missing: missing)
        }
    }

    /// The number in an envelope, in the data's text or the message's.
    private static func number(in envelope: String) -> Int? {
        guard let range = envelope.range(of: #"{"n":"#) else { return nil }
        return Int(envelope[range.upperBound...].prefix { $0 != "}" })
    }

    /// Offsets of the publications of operators with odd numbers.
    private func odd(in room: String, epoch: String) -> Set<Int> {
        let channel = ModelRedis.channel(of: room)
        let numbers = Set(self.control.requests.map(\.number).filter { !$0.isMultiple(of: 2) })
        return Set(
            self.redis.everStored.filter { stored in
                stored.channel == channel && stored.epoch == epoch
                    && Self.number(in: stored.envelope).map(numbers.contains) == true
            }.map(\.offset))
    }

    private static func numbers(_ envelopes: Set<String>) -> Set<Int> { Set(envelopes.compactMap(Self.number)) }

    /// What was acknowledged is kept, unless Redis lost it or it was removed, and nothing is stored twice, but what Redis
    /// lost.
    private func judgeStorage(_ lost: Set<Int>) {
        let stored = self.redis.everStored.compactMap { Self.number(in: $0.envelope) }
        let kept = Self.numbers(self.redis.store.kept)
        let removed = Self.numbers(self.redis.removed).union(Self.numbers(self.redis.trimmed))
        let twice = Dictionary(stored.map { ($0, 1) }, uniquingKeysWith: +).filter {
            $0.value > 1 && !lost.contains($0.key)
        }
        if !twice.isEmpty { self.complaints.append("stored twice: \(twice.keys.sorted())") }
        let requested = Set(self.control.requests.filter(\.isAcknowledged).map(\.number))
        for acknowledged in self.clients.map(\.acknowledged) + [requested] {
            let missing = acknowledged.subtracting(kept).subtracting(lost).subtracting(removed)
            if !missing.isEmpty { self.complaints.append("acknowledged and not stored: \(missing.sorted())") }
        }
        self.counts["acknowledged", default: 0] += self.clients.reduce(0) { $0 + $1.acknowledged.count }
        self.counts["acknowledgedRequests", default: 0] += requested.count
    }

    /// Repetitions tell the position of the one publication that was stored.
    private func judgeRequests(_ lost: Set<Int>) {
        for request in self.control.requests where !lost.contains(request.number) {
            let positions = Set(request.positions.map { "\($0.epoch) \($0.offset)" })
            let channel = ModelRedis.channel(of: request.room)
            let stored = self.redis.everStored.filter {
                $0.channel == channel && Self.number(in: $0.envelope) == request.number
            }
            let expected = Set(stored.map { "\($0.epoch) \($0.offset)" })
            if positions != expected {
                self.complaints.append("\(request.number) is told to be at \(positions), and is at \(expected)")
            }
        }
    }

    /// No node gives what was removed to a client that comes back.
    private func judgeRemovals() throws {
        // Redis may have forgotten one with its idempotency key, and have stored its repetition.
        let removed = Self.numbers(self.redis.removed).subtracting(Self.numbers(self.redis.store.kept))
        guard !removed.isEmpty else { return }
        var positions: [String: (epoch: String, offset: Int)] = [:]
        for room in Self.rooms {
            guard let stream = self.redis.stream(of: room), let last = stream.entries.last?.offset,
                let hole = self.redis.removedOffsets(of: room).filter({ $0 < last }).max()
            else { continue }
            positions[room] = (stream.epoch, hole - 1)
        }
        for node in self.scene.nodes.indices where !positions.isEmpty {
            let client = try self.scene.recover(positions, from: node)
            self.complaints += client.complaints
            let numbers = Set(client.received.values.joined().map(\.number)).intersection(removed)
            if !numbers.isEmpty {
                self.complaints.append("node \(node) gives \(numbers.sorted()), which were removed")
            }
        }
        self.count("probed")
    }

    /// Everyone got the same at the same position, as Redis had it, and all of it.
    private func judgeOrder(_ room: String) {
        guard let stream = self.redis.stream(of: room) else {
            return self.complaints.append("\(room) has no stream")
        }
        let removed = self.redis.removedOffsets(of: room)
        let kept = Dictionary(
            stream.entries.map { ($0.offset, Self.number(in: $0.envelope) ?? 0) }, uniquingKeysWith: { $1 })
        var known: [String: Int] = [:]
        for client in self.clients {
            for publication in client.received[room] ?? [] {
                let key = "\(publication.epoch) \(publication.offset)"
                let number = known[key] ?? publication.number
                known[key] = number
                if number != publication.number {
                    self.complaints.append(
                        "client \(client.name) in \(room) got \(publication), others \(number)")
                }
                if publication.epoch == stream.epoch, kept[publication.offset] != publication.number,
                    kept[publication.offset] != nil
                        || !removed.contains(publication.offset) && !self.wasDropped(publication, in: room)
                {
                    let other = kept[publication.offset] ?? 0
                    self.complaints.append("client \(client.name) in \(room) got \(publication), Redis has \(other)")
                }
            }
        }
    }

    /// Whether the room's stream had the publication, and may have dropped it.
    private func wasDropped(_ publication: ClusterClient.Received, in room: String) -> Bool {
        let channel = ModelRedis.channel(of: room)
        return self.redis.mayHaveDropped((publication.epoch, publication.offset), of: room)
            && self.redis.everStored.contains {
                $0.channel == channel && $0.offset == publication.offset
                    && Self.number(in: $0.envelope) == publication.number
            }
    }

    /// Clients got what a client published once at most. An operator's publication that was repeated may reach a client
    /// on two nodes, or by a node that was alone and by Redis.
    private func judgeUnkept() {
        self.count(self.scene.deliversAlone ? "alone loads" : "unkept loads")
        let repeatable = Set(self.control.requests.map(\.number))
        for client in self.clients {
            for (room, received) in client.received {
                let counts = Dictionary(received.map { ($0.number, 1) }, uniquingKeysWith: +)
                let twice = counts.filter { $0.value > 1 && !repeatable.contains($0.key) }.keys.sorted()
                if !twice.isEmpty { self.complaints.append("client \(client.name) in \(room) got twice: \(twice)") }
                if let last = counts.keys.max(), last > self.published {
                    self.complaints.append("client \(client.name) in \(room) got \(last), which nobody sent")
                }
            }
        }
        for member in self.scene.plainMembers {
            for stay in member.stays {
                let own = stay.sent.intersection(stay.received)
                if !own.isEmpty { self.complaints.append("plain member \(member.name) got its own \(own.sorted())") }
            }
        }
    }
}
