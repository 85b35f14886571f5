import Foundation
import GatewayCore
import Rooms
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// Clients of the rooms' protocol that publish, stop reading, vanish and come back at random, on a gateway with several
/// loops.
///
/// `SLUICE_TEST_SIZE=nightly` runs 10 000 seeds instead of 100; `SLUICE_SEED=7` or `SLUICE_SEED=7-90` runs those.
@Suite("Rooms with clients that disconnect and reconnect")
struct RoomSimulationTests {
    private static let batches = SimulationSeeds.batches(
        usual: 100, environment: ProcessInfo.processInfo.environment)

    @Test(arguments: Self.batches)
    func everyMessageArrivesOnceAndInOrder(_ seeds: [UInt64]) async throws {
        for seed in seeds {
            // Tests that wait for something go on meanwhile.
            await Task.yield()
            let load = try RoomLoad(seed: seed)
            try load.run()
            guard !load.complaints.isEmpty else { continue }
            Issue.record("replay with SLUICE_SEED=\(seed)\n\(load.complaints.joined(separator: "\n"))")
        }
    }

    /// The simulation covers recoveries, messages that clients missed, clients that are too slow, and publishers that wait.
    @Test func loadRecoversWhatClientsMissed() throws {
        var (recovered, published, slow, pauses) = (0, 0, 0, 0)
        for seed in UInt64(1)...6 {
            let load = try RoomLoad(seed: seed)
            try load.run()
            recovered += load.scene.gateway.shared.hub.counters[.recovered]
            published += load.published
            slow += load.slowClients
            pauses += load.pauses
        }
        #expect(recovered > 20 && published > 100)
        #expect(slow > 3)
        #expect(pauses > 0)
    }
}

/// One seed's clients, and what they must have received at the end.
private final class RoomLoad {
    private static let configuration = """
        listeners:
          - {name: web, listen: "ws://10.1.0.1:1001"}
        routes:
          - {name: programs, path: /rooms, target: rooms}
        rooms:
          max-recovery: 100000
          policies:
            - {name: all, pattern: "*", publish: everyone, history-size: 100000, history-time: 1d, recovery: stream}
        """
    private static let rooms = ["a", "b"]

    /// One user's program: its connection, and what it has received in each room over all its connections.
    private final class Client {
        var peer: RawWebSocketPeer?
        var framesRead = 0
        var numbers: [Int: String] = [:]
        var lastNumber = 0
        var epochs: [String: String] = [:]
        var received: [String: [(offset: Int, data: Int)]] = [:]
        var subscribed: Set<String> = []
    }

    let scene: GatewayScene
    private var generator: SeededGenerator
    private let clients = (0..<5).map { _ in Client() }
    /// Small buffers: slow clients are removed, and publishers wait for other loops.
    private let isTight: Bool
    private(set) var published = 0
    private(set) var slowClients = 0
    /// How often a client was found not to be read.
    private(set) var pauses = 0
    private(set) var complaints: [String] = []

    init(seed: UInt64) throws {
        var faults = FaultPlan.calm
        faults.turnCost = .microseconds(1) ... .microseconds(50)
        self.isTight = seed.isMultiple(of: 2)
        if self.isTight {
            faults.sendBuffer = 2048...2048
            faults.receiveBuffer = 2048...2048
        }
        self.scene = try GatewayScene(
            Self.configuration, seed: seed, faults: faults, loops: 3,
            buffers: self.isTight ? Self.tightBuffers : RoomBuffers())
        self.generator = SeededGenerator(seed: seed)
    }

    private static var tightBuffers: RoomBuffers {
        var buffers = RoomBuffers()
        (buffers.memberBacklog, buffers.crowdedMemberBacklog, buffers.totalBacklog) = (2048, 1024, 4096)
        (buffers.memberOutput, buffers.ready, buffers.batch, buffers.taken) = (512, 1024, 1024, 512)
        (buffers.undelivered, buffers.inbox) = (1024, 2048)
        return buffers
    }

    func run() throws {
        for _ in 0..<80 {
            let client = self.clients[Int.random(in: 0..<self.clients.count, using: &self.generator)]
            switch Int.random(in: 0..<10, using: &self.generator) {
            case 0: self.lose(client)
            case 1, 2: try self.connect(client)
            case 3 where self.isTight: client.peer?.peer.isReading.toggle()
            default:
                let most = self.isTight ? 6 : 1
                for _ in 0..<Int.random(in: 1...most, using: &self.generator) { self.publish(by: client) }
            }
            _ = self.scene.network.run(for: .microseconds(Int.random(in: 0...3000, using: &self.generator)))
            let tasks = self.scene.gateway.parts.flatMap { $0.clients(ofRoute: "programs") }
            self.pauses += tasks.count(where: \.task.record.isStalled)
        }
        for client in self.clients { client.peer?.peer.isReading = true }
        self.scene.settle()
        for client in self.clients { try self.connect(client) }
        self.scene.settle()
        for client in self.clients { self.read(client) }
        self.judge()
        self.scene.finish()
    }

    private func lose(_ client: Client) {
        guard let peer = client.peer else { return }
        // What the program has read before the loss counts as received.
        self.read(client)
        peer.peer.reset()
        client.peer = nil
        client.subscribed = []
        client.numbers = [:]
    }

    private func connect(_ client: Client) throws {
        if let peer = client.peer?.peer, peer.sawEnd || peer.failure != nil || client.peer?.close != nil {
            let code = client.peer?.close.map { $0.prefix(2).reduce(0) { $0 << 8 | Int($1) } }
            if code == 3008 { self.slowClients += 1 } else { self.complaints.append("closed with \(code ?? 0)") }
            self.lose(client)
        }
        guard client.peer == nil else { return }
        let peer = try self.scene.webSocketClient(1001, "/rooms")
        guard self.scene.head(peer) != nil else { return self.complaints.append("no response") }
        client.peer = peer
        client.framesRead = 0
        var commands = [#"{"id":1,"connect":{}}"#]
        for (index, room) in Self.rooms.enumerated() {
            let offset = client.received[room]?.last?.offset ?? 0
            let epoch = client.epochs[room] ?? ""
            commands.append(
                #"{"id":\#(index + 2),"subscribe":{"channel":"\#(room)","recover":true,"offset":\#(offset),"epoch":"\#(epoch)"}}"#
            )
            client.numbers[index + 2] = room
        }
        client.lastNumber = 1 + Self.rooms.count
        peer.send(1, commands.joined(separator: "\n"))
    }

    private func publish(by client: Client) {
        guard let peer = client.peer, let room = Self.rooms.randomElement(using: &self.generator) else { return }
        self.published += 1
        client.lastNumber += 1
        let size = self.isTight ? Int.random(in: 0...400, using: &self.generator) : 0
        let data = #"{"n":\#(self.published),"fill":"\#(String(repeating: "x", count: size))"}"#
        peer.send(1, #"{"id":\#(client.lastNumber),"publish":{"channel":"\#(room)","data":\#(data)}}"#)
    }

    // MARK: What clients read

    private func read(_ client: Client) {
        guard let peer = client.peer else { return }
        let frames = peer.frames
        for frame in frames.dropFirst(client.framesRead) where frame.opcode == 1 {
            for line in frame.payload.split(separator: 0x0A) { self.read(Data(line), by: client) }
        }
        client.framesRead = frames.count
    }

    private func read(_ line: Data, by client: Client) {
        guard let reply = try? JSONSerialization.jsonObject(with: line) as? [String: Any] else {
            return self.complaints.append("no JSON: \(String(decoding: line, as: UTF8.self))")
        }
        if let error = reply["error"] { self.complaints.append("error \(error)") }
        if let push = reply["push"] as? [String: Any], let room = push["channel"] as? String {
            guard client.subscribed.contains(room) else { return self.complaints.append("push before the reply") }
            if let publication = push["pub"] as? [String: Any] { self.note(publication, in: room, of: client) }
        }
        guard let result = reply["subscribe"] as? [String: Any], let number = reply["id"] as? Int,
            let room = client.numbers[number]
        else { return }
        if result["recovered"] as? Bool != true { self.complaints.append("not recovered: \(result)") }
        client.epochs[room] = result["epoch"] as? String
        client.subscribed.insert(room)
        let last = client.received[room]?.last?.offset ?? 0
        if last != result["offset"] as? Int ?? 0 {
            self.complaints.append("recovered from \(last), not from \(result)")
        }
        for case let publication as [String: Any] in result["publications"] as? [Any] ?? [] {
            self.note(publication, in: room, of: client)
        }
    }

    private func note(_ publication: [String: Any], in room: String, of client: Client) {
        guard let offset = publication["offset"] as? Int,
            let data = (publication["data"] as? [String: Any])?["n"] as? Int
        else {
            return self.complaints.append("publication without offset or data: \(publication)")
        }
        client.received[room, default: []].append((offset, data))
    }

    // MARK: Judging

    private func judge() {
        for room in Self.rooms {
            let histories = self.clients.map { $0.received[room] ?? [] }
            for (index, history) in histories.enumerated() {
                let offsets = history.map(\.offset)
                if offsets != Array(1..<(offsets.count + 1)) {
                    self.complaints.append("client \(index) in \(room): offsets \(offsets)")
                }
                if history.map(\.data) != histories[0].map(\.data) {
                    self.complaints.append("client \(index) in \(room) has another history than client 0")
                }
            }
        }
        let total = Self.rooms.reduce(0) { $0 + (self.clients[0].received[$1]?.count ?? 0) }
        if total > self.published { self.complaints.append("\(total) messages of \(self.published)") }
        let data = Self.rooms.flatMap { (self.clients[0].received[$0] ?? []).map(\.data) }
        if Set(data).count != data.count { self.complaints.append("a message twice") }
        let underWay = self.scene.gateway.shared.hub.bytesUnderWay
        if underWay != 0 { self.complaints.append("\(underWay) bytes of messages still count as being on their way") }
    }
}
