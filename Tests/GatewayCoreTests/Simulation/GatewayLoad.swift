import GatewayCore
import SessionTasks
import StreamTransport
import TestSupport
import WebSocketProtocol

/// One seeded run: a gateway between mixed clients and mixed upstreams, through every fault there is.
final class GatewayLoad {
    private static let gatewayText = """
        close-spread: 1s
        drain-timeout: 20s
        listeners:
          - {name: raw, listen: "tcp://10.1.0.1:1001", route: raw}
          - {name: bridged, listen: "tcp://10.1.0.1:1002", route: bridged, max-connections: 8}
          - {name: fed, listen: "tcp://10.1.0.1:1003", route: fed}
          - {name: echoed, listen: "tcp://10.1.0.1:1004", route: echo}
          - {name: web, listen: "ws://10.1.0.1:1005", handshake-timeout: 5s}
        routes:
          - {name: raw, target: stream, buffer: {high: 16KiB, low: 2KiB}}
          - {name: bridged, target: web}
          - {name: fed, target: source}
          - {name: to-stream, path: /stream, target: stream}
          - {name: to-web, path: /web, target: web, buffer: {high: 8KiB, low: 1KiB}}
          - {name: to-source, path: /source, target: source}
          - {name: to-nowhere, path: /nowhere, target: nowhere}
          - {name: echo, path: /echo, target: echo}
        upstreams:
          - {name: stream, endpoints: ["tcp://10.2.0.1:2001"], connect-timeout: 2s}
          - {name: web, endpoints: ["ws://10.2.0.1:2002/echo", "ws://10.2.0.1:2002/echo?2"], connect-timeout: 2s, policy: least-connections}
          - {name: source, endpoints: ["tcp://10.3.0.1:3001"], connect-timeout: 2s}
          - {name: nowhere, endpoints: ["tcp://10.3.0.1:3999"], connect-timeout: 2s, retries: 1}
        """
    private static let upstreamText = """
        listeners:
          - {name: raw, listen: "tcp://10.2.0.1:2001", route: echo}
          - {name: web, listen: "ws://10.2.0.1:2002"}
        routes:
          - {name: echo, path: /echo, target: echo}
        """
    private static let configurations = Result {
        (try ConfigurationSamples.configuration(gatewayText), try ConfigurationSamples.configuration(upstreamText))
    }

    /// What every source says before it ends.
    static let sourceText = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }

    let network: SimulatedNetwork
    let gateway: SimulatedGateway
    let upstream: SimulatedGateway
    private let host: ScriptedHost
    private let sources: ScriptedListener
    private let loop: Loop
    private var chance: SeededGenerator
    private var raw: [SimulatedRawClient] = []
    private var web: [SimulatedWebClient] = []
    private var fed = 0

    init(seed: UInt64, faults: FaultPlan = .rough) throws {
        let (configuration, upstream) = try Self.configurations.get()
        // What listens is opened on a calm network.
        let network = SimulatedNetwork(seed: seed, traceLength: 120)
        self.network = network
        self.chance = SeededGenerator(seed: seed)
        self.gateway = try SimulatedGateway(
            configuration, on: network, loops: Int.random(in: 1...2, using: &self.chance))
        self.upstream = try SimulatedGateway(upstream, on: network)
        let system = network.makeSystem()
        let host = ScriptedHost(on: system)
        system.drive { host.turn() }
        self.host = host
        self.sources = try host.listen(at: .ipv4(address: 0x0A03_0001, port: 3001))
        let loop = Loop(system: network.makeSystem())
        (loop.system as? SimulatedSystem)?.drive { loop.turn() }
        self.loop = loop
        network.faults = faults
    }

    // MARK: The load

    func run() {
        for _ in 0..<Int.random(in: 8...24, using: &self.chance) {
            self.arrive()
            self.pass(.milliseconds(Int.random(in: 0...60, using: &self.chance)))
        }
        for _ in 0..<40 {
            self.pass(.milliseconds(Int.random(in: 1...300, using: &self.chance)))
        }
        if Bool.random(using: &self.chance) { self.gateway.process.exhaustDescriptors(for: .milliseconds(50)) }
        _ = self.network.run(for: .seconds(30))
    }

    private func arrive() {
        switch Int.random(in: 0..<9, using: &self.chance) {
        case 0: self.arriveRaw(1001, expecting: nil)
        case 1: self.arriveRaw(1002, expecting: nil)
        case 2: self.arriveRaw(1003, expecting: Self.sourceText)
        case 3: self.arriveRaw(1004, expecting: nil)
        case 4: self.arriveWeb("/stream", keepsMessages: false, expecting: nil)
        case 5: self.arriveWeb("/web", keepsMessages: true, expecting: nil)
        case 6: self.arriveWeb("/source", keepsMessages: false, expecting: Self.sourceText)
        case 7: self.arriveWeb("/echo", keepsMessages: true, expecting: nil)
        default: self.arriveWeb("/nowhere", keepsMessages: true, expecting: nil)
        }
    }

    private func arriveRaw(_ port: UInt16, expecting: [UInt8]?) {
        guard let peer = try? self.host.connect(to: .ipv4(address: 0x0A01_0001, port: port)) else { return }
        self.raw.append(SimulatedRawClient(peer, expecting: expecting, using: &self.chance))
    }

    private func arriveWeb(_ path: String, keepsMessages: Bool, expecting: [UInt8]?) {
        let target = OpeningTarget(.address(.ipv4(address: 0x0A01_0001, port: 1005)))
        let handshake = ClientHandshake(authority: "gateway.test", target: path)
        let task = WebSocketTask(opening: ClientOpening(target: target, handshake: handshake), on: self.loop)
        let client = SimulatedWebClient(task, keepsMessages: keepsMessages, expecting: expecting, using: &self.chance)
        self.web.append(client)
        self.loop.inNextTurn(GatewayCall { client.start() })
    }

    /// Lets time pass in which everybody does the next thing.
    private func pass(_ duration: Duration) {
        for client in self.raw { client.step(using: &self.chance) }
        let web = self.web
        self.loop.inNextTurn(GatewayCall { for client in web { client.step(using: &self.chance) } })
        for peer in self.sources.accepted[self.fed...] {
            peer.send(Self.sourceText)
            peer.finish()
        }
        self.fed = self.sources.accepted.count
        _ = self.network.run(for: duration)
    }

    // MARK: The end

    /// Ends everything in order.
    /// - Returns: what is wrong at the end, a line each.
    func conclude() -> [String] {
        self.network.faults = .calm
        var complaints = self.raw.compactMap { client in client.complaint.map { "a raw client \($0)" } }
        complaints += self.web.compactMap { client in client.complaint.map { "a WebSocket client \($0)" } }
        var empty = 0
        var settings = DrainSettings()
        settings.timeout = .seconds(20)
        settings.closeSpread = .seconds(1)
        self.gateway.drain(settings) { empty += 1 }
        _ = self.network.run(for: .seconds(25))
        if empty != self.gateway.parts.count {
            complaints.append("draining ended \(empty) of \(self.gateway.parts.count) times")
        }
        let left = self.web
        self.loop.inNextTurn(GatewayCall { for client in left { client.task.reset() } })
        self.host.close()
        self.upstream.drain(settings) { empty += 1 }
        if self.network.runUntilIdle(atMost: .seconds(100 * 86_400)) != .idle {
            complaints.append("a timer never rests")
        }
        complaints += self.web.compactMap { client in client.complaint.map { "a WebSocket client \($0)" } }
        return complaints + self.leftovers(self.gateway, "the gateway") + self.leftovers(self.upstream, "the upstream")
            + self.network.misuses
    }

    private func leftovers(_ gateway: SimulatedGateway, _ name: String) -> [String] {
        var found: [String] = []
        if gateway.liveCount > 0 { found.append("\(name) has \(gateway.liveCount) connections left") }
        if gateway.watchedCount > 0 { found.append("\(name) watches \(gateway.watchedCount) descriptors") }
        if gateway.process.openDescriptors > 0 {
            found.append("\(name) has \(gateway.process.openDescriptors) descriptors left")
        }
        let admitted = gateway.shared.withAdmission { $0.connections }
        if admitted > 0 { found.append("\(name) counts \(admitted) connections as admitted") }
        let endings = gateway.endings.map(\.identifier).sorted()
        let all = Array(1..<(Int(gateway.shared.identifiers) + 1))
        if endings != all { found.append("\(name) gave \(endings.count) reasons for \(all.count) connections") }
        return found
    }

    /// How many connections came to an end by each reason.
    var reasons: [String: Int] {
        Dictionary(self.gateway.endings.map { ($0.reason, 1) }, uniquingKeysWith: +)
    }
}
