import GatewayConfiguration
import GatewayCore
import SimulatedNetwork
import StreamTransport
import Synchronization
import TestSupport
import Testing

/// A gateway as a process on a simulated network: its loops take their turns from the network.
final class SimulatedGateway {
    /// One line of the log about a connection that is over.
    struct Ending: Equatable {
        let identifier: Int
        let reason: String
    }

    let network: SimulatedNetwork
    let process: SimulatedProcess
    let parts: [LoopGateway]
    let plan: GatewayPlan
    let shared: GatewayShared
    /// Loops that are busy with something else: they take no turns.
    let stalled: StalledLoops
    let journal = EventLog()
    private let log: TunnelLog
    private let written = WrittenLog()

    /// - Parameters:
    ///   - loops: all listen on every address.
    ///   - randomWords: for epochs and identifiers.
    init(
        _ configuration: Configuration, on network: SimulatedNetwork, loops count: Int = 1,
        buffers: RoomBuffers = RoomBuffers(), responders: [String: any HTTPResponder] = [:],
        cluster: RoomCluster? = nil, randomWords: (@Sendable (Int) -> [UInt64])? = nil
    ) throws {
        self.network = network
        let first = network.makeSystem()
        self.process = first.process
        let systems = [first] + (1..<count).map { _ in first.process.makeSystem() }
        let stalled = StalledLoops()
        self.stalled = stalled
        let loops = systems.enumerated().map { index, system in
            let loop = Loop(system: system)
            // Weakly: the network's side of a loop does not keep it.
            system.drive { [weak loop, weak system] in
                guard stalled.contains(index) else { return loop?.turn() ?? () }
                var events = ReadyEvents()
                system?.wait(&events, until: nil)
            }
            return loop
        }
        let written = self.written
        self.log = TunnelLog(configuration.log, writer: LogWriter(onOwnThread: false) { written.append($0) })
        let shared = GatewayShared(
            log: self.log,
            hub: RoomHub(
                loops: loops, settings: configuration.rooms, cluster: cluster, buffers: buffers,
                randomWords: randomWords),
            admission: Admission(configuration),
            eventLog: self.journal)
        self.shared = shared
        self.parts = loops.enumerated().map { LoopGateway(loop: $1, index: $0, shared: shared) }
        for part in self.parts { part.start() }
        self.plan = try GatewayPlan(configuration, responders: responders)
        for listener in self.plan.listeners { try self.open(listener) }
    }

    private func open(_ listener: ListenerPlan) throws {
        var options = ListenOptions()
        options.portSharing = .join
        let place: SocketAddress
        switch listener.configuration.address {
        case .tcp(let address, let port): place = SocketAddress(address, port: port)
        case .tcpAny(let port):
            options.dualStack = true
            place = .ipv6(high: 0, low: 0, scope: 0, port: port)
        case .unix, .adopted: return
        }
        for part in self.parts {
            try part.open(listener, on: part.loop.system.listen(place, options: options).get())
        }
    }

    var liveCount: Int {
        self.parts.reduce(0) { $0 + $1.liveConnections.count }
    }

    var watchedCount: Int {
        self.parts.reduce(0) { $0 + $1.loop.watchedCount }
    }

    /// Runs `body` in a turn of the first loop.
    func perform(_ body: @escaping (LoopGateway) -> Void) {
        let part = self.parts[0]
        var done = false
        part.loop.inNextTurn(
            GatewayCall {
                body(part)
                done = true
            })
        _ = self.network.run(until: { done })
    }

    /// Runs `body` in the next turn of the loop that is a room's home, without waiting for it.
    func begin(inHomeOf room: String, _ body: @escaping (LoopGateway) -> Void) {
        let part = self.parts[self.shared.hub.home(of: room)]
        part.loop.inNextTurn(GatewayCall { body(part) })
    }

    /// Begins to drain all loops.
    /// - Parameter whenEmpty: called once for each loop.
    func drain(_ settings: DrainSettings, whenEmpty: @escaping () -> Void) {
        for part in self.parts {
            part.loop.inNextTurn(GatewayCall { part.drain(settings, whenEmpty: whenEmpty) })
        }
    }

    /// The connections that are over, in the order of their ends, as the log has them.
    var endings: [Ending] {
        self.lines("connection closed").compactMap { values in
            guard let identifier = values["id"].flatMap({ Int($0) }), let reason = values["reason"] else { return nil }
            return Ending(identifier: identifier, reason: reason)
        }
    }

    /// The connections that came to an endpoint, in order, as the log has them.
    var openings: [Int] {
        self.lines("connection opened").compactMap { $0["id"].flatMap { Int($0) } }
    }

    /// Number of log lines that contain `text`.
    func logged(_ text: String) -> Int {
        self.log.flush()
        return self.written.lines.count { $0.contains(text) }
    }

    /// The values of all lines with this message.
    private func lines(_ message: String) -> [[String: String]] {
        self.log.flush()
        return self.written.lines.filter { $0.contains(" \(message) ") }.map { line in
            let pairs = line.split(separator: " ").map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
            return Dictionary(pairs.filter { $0.count == 2 }.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 })
        }
    }
}

/// Log lines, from whichever thread they come.
final class WrittenLog: Sendable {
    private let bytes = Mutex<[UInt8]>([])

    func append(_ more: [UInt8]) {
        self.bytes.withLock { $0 += more }
    }

    var lines: [String] {
        self.bytes.withLock { String(decoding: $0, as: UTF8.self) }.split(separator: "\n").map(String.init)
    }
}

/// A closure that a loop runs once, in its next turn.
final class GatewayCall: TurnEndTarget {
    private let body: () -> Void

    init(_ body: @escaping () -> Void) {
        self.body = body
    }

    func turnEnded() {
        self.body()
    }
}

/// Which of a gateway's loops take no turns.
final class StalledLoops {
    private var indices: Set<Int> = []

    func insert(_ index: Int) {
        self.indices.insert(index)
    }

    func remove(_ index: Int) {
        self.indices.remove(index)
    }

    func contains(_ index: Int) -> Bool {
        self.indices.contains(index)
    }
}
