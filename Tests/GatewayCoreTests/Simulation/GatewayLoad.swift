import GatewayConfiguration
import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import WebSocketProtocol

/// One seeded run: a gateway between mixed clients and mixed upstreams, with every kind of fault.
///
/// Every third seed is mild: reads are short, writes partial and delays random, but nothing is lost; then every peer
/// must receive everything.
final class GatewayLoad {
    /// More than ten times the steps of the longest run.
    private static let stepLimit = 5_000_000
    static let drain: DrainSettings = {
        var settings = DrainSettings()
        settings.timeout = .seconds(20)
        settings.closeSpread = .seconds(1)
        return settings
    }()

    let network: SimulatedNetwork
    let gateway: SimulatedGateway
    let upstream: SimulatedGateway
    let host: ScriptedHost
    let sources: ScriptedListener
    let sinks: ScriptedListener
    let loop: Loop
    let isMild: Bool
    private let secure: SecureSettings
    private var chance: SeededGenerator
    private(set) var raw: [SimulatedRawClient] = []
    private(set) var web: [SimulatedWebClient] = []
    private var fed = 0
    /// The pass in which the gateway drains; `nil` is at the end.
    private let drainsIn: Int?
    private let looksInto: Int?
    private var passes = 0
    private var drained = 0
    private(set) var drainedAt: MonotonicInstant?
    /// Violated invariants, a line each.
    var complaints: [String] = []
    /// Objects of connections that were under way at one time.
    private(set) var watched: [WeakObject] = []

    init(seed: UInt64) throws {
        self.isMild = seed % 3 == 0
        self.secure = try LoadConfiguration.makeClientSettings()
        // Listeners are opened before the network loses anything.
        let network = SimulatedNetwork(seed: seed, traceLength: 120)
        network.stepLimit = Self.stepLimit
        self.network = network
        var chance = SeededGenerator(seed: seed)
        self.gateway = try SimulatedGateway(
            LoadConfiguration.gateway.get(), on: network, loops: Int.random(in: 1...2, using: &chance))
        self.upstream = try SimulatedGateway(LoadConfiguration.upstream.get(), on: network)
        let system = network.makeSystem()
        let host = ScriptedHost(on: system)
        system.drive { [weak host] in host?.turn() }
        self.host = host
        self.sources = try host.listen(at: .ipv4(address: 0x0A03_0001, port: 3001))
        self.sinks = try host.listen(at: .ipv4(address: 0x0A03_0001, port: 3002))
        let clients = network.makeSystem()
        let loop = Loop(system: clients)
        clients.drive { [weak loop] in loop?.turn() }
        self.loop = loop
        self.drainsIn = !self.isMild && seed % 3 == 1 ? Int.random(in: 1...40, using: &chance) : nil
        // Looking at everything takes long.
        self.looksInto = seed % 16 == 5 ? Int.random(in: 4...20, using: &chance) : nil
        self.chance = chance
        network.faults = self.isMild ? .mild : .rough
    }

    // MARK: The load

    func run() {
        for number in 0..<Int.random(in: 8...24, using: &self.chance) {
            self.arrive(number)
            self.pass(.milliseconds(Int.random(in: 0...60, using: &self.chance)))
        }
        for _ in 0..<40 {
            self.pass(.milliseconds(Int.random(in: 1...300, using: &self.chance)))
        }
        guard self.isMild else { return self.let(.seconds(30)) }
        self.check(self.network.run(until: { self.isContent }, atMost: .seconds(300)))
        self.complaints += self.discontent
    }

    private func arrive(_ number: Int) {
        guard let door = LoadListener.all.randomElement(using: &self.chance) else { return }
        let tag = [UInt8(number)] + self.chance.bytes(3)
        switch door.entrance {
        case .raw(let port):
            guard let peer = try? self.host.connect(to: GatewayScene.gatewayAddress(port)) else { return }
            self.raw.append(SimulatedRawClient(peer, at: door, tag: tag, using: &self.chance))
        case .web(let path): self.arrive(at: path, port: 1005, secure: nil, door, tag)
        case .secureWeb(let path): self.arrive(at: path, port: 1013, secure: self.secure, door, tag)
        }
    }

    private func arrive(at path: String, port: UInt16, secure: SecureSettings?, _ door: LoadListener, _ tag: [UInt8]) {
        let policy = door.offersCompression ? DeflatePolicy() : nil
        let handshake = ClientHandshake(authority: "gateway.test", target: path, offers: policy?.offers ?? [])
        var target = OpeningTarget(.address(GatewayScene.gatewayAddress(port)))
        target.secure = secure
        let opening = ClientOpening(target: target, handshake: handshake, deflate: policy)
        let client = SimulatedWebClient(
            WebSocketTask(opening: opening, on: self.loop), at: door, tag: tag, using: &self.chance)
        self.web.append(client)
        self.loop.inNextTurn(GatewayCall { client.start() })
    }

    /// Runs the network for `duration`, in which every peer takes its next step.
    private func pass(_ duration: Duration) {
        self.passes += 1
        for client in self.raw { client.step(using: &self.chance) }
        let web = self.web
        self.loop.inNextTurn(GatewayCall { for client in web { client.step(using: &self.chance) } })
        self.serve()
        self.trouble()
        self.let(duration)
        self.judgeQueues()
    }

    /// The upstreams that are no gateways.
    private func serve() {
        for peer in self.sources.accepted[self.fed...] {
            peer.send(LoadListener.sourceText)
            peer.finish()
        }
        self.fed = self.sources.accepted.count
        for peer in self.sinks.accepted where peer.sawEnd { peer.finish() }
    }

    private func trouble() {
        if self.passes == self.looksInto {
            self.watched = self.gateway.parts.flatMap { WeakObject.graph(of: $0.liveConnections) }
        }
        guard !self.isMild else { return }
        if Int.random(in: 0..<40, using: &self.chance) == 0 {
            self.gateway.process.exhaustDescriptors(for: .milliseconds(50))
        }
        guard let drainsIn = self.drainsIn, self.passes >= drainsIn else { return }
        if self.passes == drainsIn {
            self.drainGateway()
        } else if Int.random(in: 0..<100, using: &self.chance) == 0 {
            // A second signal.
            for part in self.gateway.parts { part.loop.inNextTurn(GatewayCall { part.abandonAll() }) }
        }
    }

    // MARK: Time

    func `let`(_ duration: Duration) {
        self.check(self.network.run(for: duration))
    }

    func check(_ outcome: RunOutcome) {
        switch outcome {
        case .conditionMet, .idle, .timeOver: break
        case .spinning, .stepsUsedUp: self.complaints.append("time does not pass: \(outcome)")
        }
    }

    func drainGateway() {
        guard self.drainedAt == nil else { return }
        self.judgeClients()
        self.drainedAt = self.network.now
        self.gateway.drain(Self.drain) { self.drained += 1 }
    }

    var isDrained: Bool {
        self.drained == self.gateway.parts.count
    }
}

extension FaultPlan {
    /// As rough as can be without anything lost.
    fileprivate static var mild: FaultPlan {
        var plan = FaultPlan.rough
        plan.reset = 0
        plan.refusedConnect = 0
        plan.hangingConnect = 0
        plan.unreachableConnect = 0
        plan.exhaustion = 0
        plan.lookupFailure = 0
        return plan
    }
}
