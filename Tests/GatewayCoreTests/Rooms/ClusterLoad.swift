import Foundation
import SimulatedNetwork
import TestSupport

/// One seed's cluster: nodes, a Redis that fails, clients that publish, vanish and come back, and what must be true at the
/// end.
final class ClusterLoad {
    private static let rooms = ["a", "b"]
    private static let actions = 70

    private let scene: ClusterScene
    private var generator: SeededGenerator
    private var published = 0
    private(set) var counts: [String: Int] = [:]
    private(set) var complaints: [String] = []

    init(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let loops = (0..<Int.random(in: 2...3, using: &generator)).map { _ in Int.random(in: 1...2, using: &generator) }
        self.scene = try ClusterScene(
            loops: loops, clients: Int.random(in: 5...8, using: &generator), rooms: Self.rooms, seed: generator.next())
        self.generator = generator
    }

    private var clients: [ClusterClient] { self.scene.clients }
    private var redis: ModelRedis { self.scene.redis }

    private func count(_ name: String) { self.counts[name, default: 0] += 1 }

    // MARK: Running

    func run() throws {
        for client in self.clients { try self.scene.connect(client, to: self.drawNode()) }
        self.scene.pass(.milliseconds(50))
        for _ in 0..<Self.actions {
            try self.act()
            self.scene.pass(self.drawTime())
        }
        self.redis.heal()
        try self.gather()
        try self.publishLast()
        self.judge()
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
        switch Int.random(in: 0..<100, using: &self.generator) {
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
        default:
            for _ in 0..<Int.random(in: 1...3, using: &self.generator) { self.publish(by: client) }
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

    private func killNode() throws {
        try self.scene.replaceNode(self.drawNode())
        self.count("kills")
    }

    private func drawNode() -> Int { Int.random(in: 0..<self.scene.nodes.count, using: &self.generator) }

    private func publish(by client: ClusterClient) {
        guard let room = Self.rooms.randomElement(using: &self.generator) else { return }
        if client.publish(self.published + 1, in: room) { self.published += 1 }
    }

    // MARK: The end

    /// Lets all clients come back.
    private func gather() throws {
        guard try !self.scene.gather(on: { self.drawNode() }) else { return }
        for client in self.clients where !client.isInAllRooms {
            self.complaints.append("client \(client.name) is in \(client.subscribed) only")
        }
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
            for client in self.clients where client.received[room]?.last?.number != self.published {
                self.complaints.append("client \(client.name) did not get the last publication in \(room)")
            }
        }
    }

    /// All nodes list all clients, and none of those that nodes left behind when they were killed.
    private func askForPresence() {
        for client in self.clients { client.askForPresence() }
        self.scene.pass(.milliseconds(100))
        for client in self.clients {
            for room in Self.rooms where client.listed[room] != self.clients.count {
                self.complaints.append("client \(client.name) sees \(client.listed[room] ?? 0) in \(room)")
            }
        }
    }

    private func finish() {
        for client in self.clients {
            for (name, number) in client.counts { self.counts[name, default: 0] += number }
            self.complaints += client.complaints
        }
        for (name, number) in self.redis.counts { self.counts[name, default: 0] += number }
        self.counts["published", default: 0] += self.published
        self.complaints += self.redis.complaints
        self.complaints += self.scene.network.misuses
        self.scene.finish()
    }

    // MARK: Judging

    private func judge() {
        self.judgeStorage()
        for room in Self.rooms { self.judgeOrder(room) }
    }

    /// The number in an envelope; it is the data's text.
    private static func number(in envelope: String) -> Int? {
        guard let range = envelope.range(of: #"{"n":"#) else { return nil }
        return Int(envelope[range.upperBound...].prefix { $0 != "}" })
    }

    /// What was acknowledged is kept, unless Redis lost it, and nothing is stored twice.
    private func judgeStorage() {
        let stored = self.redis.everStored.compactMap(Self.number)
        let kept = Set(self.redis.store.kept.compactMap(Self.number))
        let lost = Set(self.redis.lost.compactMap(Self.number))
        if Set(stored).count != stored.count { self.complaints.append("a publication is stored twice") }
        for client in self.clients {
            let missing = client.acknowledged.subtracting(kept).subtracting(lost)
            if !missing.isEmpty { self.complaints.append("acknowledged and not stored: \(missing.sorted())") }
        }
        self.counts["acknowledged", default: 0] += self.clients.reduce(0) { $0 + $1.acknowledged.count }
    }

    /// Everyone got the same at the same position, as Redis had it, and all of it.
    private func judgeOrder(_ room: String) {
        let base = "sluice:room:{\(room)}"
        guard let stream = self.redis.store.stream(meta: "\(base):meta", "\(base):stream") else {
            return self.complaints.append("\(room) has no stream")
        }
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
                if publication.epoch == stream.epoch, kept[publication.offset] != publication.number {
                    let other = kept[publication.offset] ?? 0
                    self.complaints.append("client \(client.name) in \(room) got \(publication), Redis has \(other)")
                }
            }
        }
    }
}
