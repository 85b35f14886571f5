import Cluster
import GatewayCore
import GatewayTestSupport
import RedisEngine
import Rooms
import SimulatedNetwork
import StreamTransport
import Synchronization
import TestSupport

/// Nodes of a cluster, their Redis and their clients on one simulated network.
final class ClusterScene {
    let network: SimulatedNetwork
    let redis: ModelRedis
    let clients: [ClusterClient]
    let plainMembers: [ClusterPlainMember]
    private(set) var nodes: [SimulatedGateway] = []
    private let host: ScriptedHost
    private let loops: [Int]
    private let settings: String
    private let options: Options
    private let heard = Warnings()
    private var generator: SeededGenerator

    private final class Warnings: Sendable {
        let texts = Mutex<[String]>([])
    }

    /// What differs from the usual configuration.
    struct Options {
        /// `history-size` of each node; 100 000 for those that are left out.
        var historySizes: [Int] = []
        /// Bytes of a history that a node reads at a time; `nil` for the default.
        var historyPage: Int?
        /// The same of a room's list of clients.
        var presencePage: Int?
        /// Of the clients in an answer, in bytes; `nil` for the default.
        var presenceLimit: Int?
        /// `history-time` of all nodes.
        var historyTime = "1d"
        var recovery = RoomPolicy.Recovery.stream
        /// Whether a Redis with an append-only file starts again with all that it acknowledged.
        var isDurable = true
        /// Whether nodes ask for Redis' settings.
        var warns = false
        /// Whether rooms that keep no history go on without Redis.
        var deliversAlone = false
        /// Whether Redis is a Redis Cluster of two servers.
        var isRedisCluster = false
        /// Of the nodes' connections to Redis.
        var client = RedisClientSettings()
    }

    /// - Parameters:
    ///   - loops: of each node.
    ///   - receivers: further clients, which only receive.
    ///   - plainMembers: the room of each.
    ///   - settings: of the rooms, a line each.
    init(
        loops: [Int], clients: Int, receivers: [ClusterClient.Transport] = [], rooms: [String],
        plainMembers: [String] = [], options: Options = Options(), seed: UInt64 = 1, settings: [String] = []
    ) throws {
        var faults = FaultPlan.calm
        faults.turnCost = .microseconds(1) ... .microseconds(50)
        faults.latency = .microseconds(20) ... .milliseconds(2)
        self.network = SimulatedNetwork(seed: seed, faults: faults)
        self.generator = SeededGenerator(seed: seed)
        let redis = try ModelRedis(
            on: self.network, seed: self.generator.next(), isCluster: options.isRedisCluster)
        redis.streamsExpire = options.historyTime != Options().historyTime
        self.redis = redis
        let system = self.network.makeSystem()
        let host = ScriptedHost(on: system)
        system.drive { [weak host] in host?.turn() }
        self.host = host
        self.loops = loops
        self.settings = settings.map { "  \($0)" }.joined(separator: "\n")
        self.options = options
        let transports = Array(repeating: ClusterClient.Transport.webSocket, count: clients) + receivers
        self.clients = transports.enumerated().map { name, transport in
            ClusterClient(name: name, transport: transport, rooms: rooms, recovery: options.recovery, redis: redis)
        }
        self.plainMembers = plainMembers.enumerated().map { ClusterPlainMember(name: "\($0)", room: $1) }
        for index in loops.indices { self.nodes.append(try self.makeNode(index)) }
    }

    private func configuration(node: Int) -> String {
        let sizes = self.options.historySizes
        let size = sizes.indices.contains(node) ? sizes[node] : 100_000
        return """
            listeners:
              - {name: web, listen: "ws://10.1.0.\(node + 1):1001", forwarding-trusted: [10.0.0.0/8]}
              - {name: raw, listen: "tcp://10.1.0.\(node + 1):1002", route: lobby}
            routes:
              - {name: programs, path: /rooms, target: rooms}
              - {name: events, path: /events, target: room-events}
              - {name: chat, path: "/chat/{room}", target: chat}
              - {name: lobby, target: chat, framing: lines}
            rooms:
              max-recovery: 100000
            \(self.settings)
              policies:
                - name: all
                  pattern: "*"
                  publish: everyone
                  history-size: \(size)
                  history-time: \(self.options.historyTime)
                  recovery: \(self.options.recovery)
                  presence: true
                  tag-filters: true
                  join-leave: true
            """
    }

    private func makeNode(_ index: Int) throws -> SimulatedGateway {
        let words = Mutex(SeededGenerator(seed: self.generator.next()))
        var cluster = RoomCluster(
            node: "node-\(index)",
            address: try RedisAddress(
                self.options.isRedisCluster ? "redis+cluster://10.3.0.1,10.3.0.2" : "redis://10.3.0.1"),
            client: self.options.client)
        cluster.presenceTime = .seconds(9)
        cluster.isDurable = self.options.isDurable
        if self.options.warns {
            cluster.warn = { [heard] text in heard.texts.withLock { $0.append(text) } }
        }
        cluster.deliversAlone = self.options.deliversAlone
        if let page = self.options.historyPage { cluster.historyPage = page }
        if let page = self.options.presencePage { cluster.presencePage = page }
        if let limit = self.options.presenceLimit { cluster.presenceLimit = limit }
        return try SimulatedGateway(
            ConfigurationSamples.configuration(self.configuration(node: index)), on: self.network,
            loops: self.loops[index], cluster: cluster
        ) { count in words.withLock { words in (0..<count).map { _ in words.next() } } }
    }

    /// Whether rooms that keep no history go on without Redis.
    var deliversAlone: Bool { self.options.deliversAlone }

    /// Warnings of all nodes.
    var warnings: [String] { self.heard.texts.withLock(\.self) }

    /// Kills a node, and starts it again.
    func replaceNode(_ index: Int) throws {
        self.nodes[index].process.kill()
        self.nodes[index] = try self.makeNode(index)
    }

    private func connect(to node: Int, port: UInt16) throws -> ScriptedPeer {
        try self.host.connect(to: .ipv4(address: 0x0A01_0001 + UInt32(node), port: port))
    }

    private func peer(of node: Int) throws -> RawWebSocketPeer {
        RawWebSocketPeer(try self.connect(to: node, port: 1001), isClient: true)
    }

    /// A member of room `lobby` that speaks in lines.
    func stream(to node: Int) throws -> ScriptedPeer { try self.connect(to: node, port: 1002) }

    func connect(_ client: ClusterClient, to node: Int) throws {
        guard !client.isConnected else { return }
        switch client.transport {
        case .webSocket: client.connect(try self.peer(of: node))
        case .events, .lines: client.connect(receiving: try self.connect(to: node, port: 1001))
        }
    }

    func connect(_ member: ClusterPlainMember, to node: Int) throws {
        if !member.isConnected { member.connect(try self.peer(of: node)) }
    }

    /// What a program gets that comes back to a node with these positions, one room after another.
    func recover(_ positions: [String: (epoch: String, offset: Int)], from node: Int) throws -> ClusterClient {
        let client = ClusterClient(
            name: 100 + node, rooms: positions.keys.sorted(), positions: positions, recovery: self.options.recovery,
            redis: self.redis)
        try self.connect(client, to: node)
        for _ in 0..<20 where !client.isInAllRooms {
            self.pass(.milliseconds(10))
            client.read()
        }
        client.leave()
        return client
    }

    func pass(_ duration: Duration) {
        self.network.run(for: duration)
        self.redis.serve()
        for client in self.clients { client.read() }
        for member in self.plainMembers { member.read() }
    }

    /// Lets all clients come back, for up to 30 seconds.
    /// - Parameter node: for each client that has no connection.
    /// - Returns: whether all are in all rooms.
    @discardableResult
    func gather(on node: () -> Int = { 0 }) throws -> Bool {
        for _ in 0..<120
        where !self.clients.allSatisfy(\.isInAllRooms) || !self.plainMembers.allSatisfy(\.isConnected) {
            for client in self.clients {
                try self.connect(client, to: node())
                client.resubscribe()
            }
            for member in self.plainMembers { try self.connect(member, to: node()) }
            self.pass(.milliseconds(250))
        }
        return self.clients.allSatisfy(\.isInAllRooms)
    }

    func finish() {
        for node in self.nodes { node.process.kill() }
        self.host.close()
        self.redis.close()
    }
}
