import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("The simulated network")
struct SimulatedNetworkTests {
    private static let server = SocketAddress.ipv4(address: 0x0a01_0101, port: 80)

    /// A connecting peer and an accepting one, each in its own simulated process.
    private struct Harness {
        let network: SimulatedNetwork
        let clients: ScriptedHost
        let servers: ScriptedHost
        let listener: ScriptedListener

        init(seed: UInt64 = 1, faults: FaultPlan = .calm, options: ListenOptions = ListenOptions()) throws {
            self.network = SimulatedNetwork(seed: seed, faults: faults)
            self.clients = Self.host(on: self.network)
            self.servers = Self.host(on: self.network)
            self.listener = try self.servers.listen(at: SimulatedNetworkTests.server, options: options)
        }

        private static func host(on network: SimulatedNetwork) -> ScriptedHost {
            let system = network.makeSystem()
            let host = ScriptedHost(on: system)
            system.drive { host.turn() }
            return host
        }

        func connect() throws -> ScriptedPeer {
            try self.clients.connect(to: SimulatedNetworkTests.server)
        }

        func pair() throws -> (client: ScriptedPeer, server: ScriptedPeer) {
            let before = self.listener.accepted.count
            let client = try self.connect()
            self.network.run(until: { self.listener.accepted.count > before })
            return (client, try #require(self.listener.accepted.last))
        }
    }

    @Test func virtualTimeAdvancesOnlyDuringARun() throws {
        let harness = try Harness()
        let start = harness.network.now
        let (client, server) = try harness.pair()
        #expect(start.duration(to: harness.network.now) == .microseconds(150))
        client.send("hello")
        #expect(server.received.isEmpty)
        #expect(harness.network.run(until: { !server.received.isEmpty }) == .conditionMet)
        #expect(start.duration(to: harness.network.now) == .microseconds(200))
        #expect(harness.network.runUntilIdle() == .idle)
        #expect(harness.network.run(for: .seconds(5)) == .timeOver)
        #expect(start.duration(to: harness.network.now) == .seconds(5) + .microseconds(200))
        #expect(harness.network.misuses.isEmpty)
    }

    @Test func clientsAndServersHaveAddresses() throws {
        let harness = try Harness()
        let (client, server) = try harness.pair()
        #expect(harness.clients.system.peerAddress(client.descriptor) == Self.server)
        #expect(harness.servers.system.localAddress(server.descriptor) == Self.server)
        let source = harness.clients.system.localAddress(client.descriptor)
        #expect(source == harness.listener.peerAddresses.first)
        guard case .ipv4(0x0a00_0001, _) = source else {
            Issue.record("connects from \(String(describing: source))")
            return
        }
    }

    @Test func dualStackListenerSeesIPv4ClientsAsIPv4() throws {
        let network = SimulatedNetwork(seed: 1)
        let system = network.makeSystem()
        var options = ListenOptions()
        options.dualStack = true
        let listener = try system.listen(.ipv6(high: 0, low: 0, scope: 0, port: 80), options: options).get()
        #expect(system.listen(.ipv4(address: 0, port: 80), options: ListenOptions()) == .failure(.addressInUse))
        _ = try system.connect(.ipv4(address: 0x7f00_0001, port: 80)).get()
        network.settle()
        let socket = try system.accept(listener).get()
        guard case .ipv4(0x7f00_0001, _) = socket.peer else {
            Issue.record("sees \(socket.peer)")
            return
        }
    }

    @Test func connectionAttemptFollowsItsScript() throws {
        let harness = try Harness()
        harness.network.connectScripts[Self.server] = .refused
        let refused = try harness.connect()
        harness.network.settle()
        #expect(refused.failure == .refused)

        harness.network.connectScripts[Self.server] = .unreachable
        let unreachable = try harness.connect()
        harness.network.settle()
        #expect(unreachable.failure == .hostUnreachable)

        harness.network.connectScripts[Self.server] = .noRoute
        #expect(throws: SystemError.networkUnreachable) { try harness.connect() }

        harness.network.connectScripts[Self.server] = .delayed(.seconds(3))
        let start = harness.network.now
        let late = try harness.connect()
        #expect(harness.network.run(until: { late.isConnected }) == .conditionMet)
        #expect(start.duration(to: harness.network.now) == .seconds(3) + .microseconds(100))

        harness.network.connectScripts[Self.server] = .hangs
        let hanging = try harness.connect()
        #expect(harness.network.run(for: .seconds(126)) == .timeOver)
        #expect(hanging.failure == nil && !hanging.isConnected)
        harness.network.run(for: .seconds(2))
        #expect(hanging.failure == .timedOut)
    }

    @Test func newcomersWaitWhileTheQueueIsFull() throws {
        var options = ListenOptions()
        options.backlog = 1
        let harness = try Harness(options: options)
        harness.listener.isAccepting = false
        let clients = try (0..<3).map { _ in try harness.connect() }
        harness.network.run(for: .milliseconds(900))
        // Linux queues one more connection than the backlog.
        #expect(clients.filter { $0.isConnected }.count == 2)
        harness.listener.isAccepting = true
        harness.network.run(for: .milliseconds(200))
        #expect(clients.allSatisfy { $0.isConnected })
        harness.network.settle()
        #expect(harness.listener.accepted.count == 3)
    }

    @Test func newConnectionsAreDistributedAmongListenersOfAPort() throws {
        var options = ListenOptions()
        options.portSharing = .join
        let harness = try Harness(options: options)
        let other = try harness.servers.listen(at: Self.server, options: options)
        for _ in 0..<40 { _ = try harness.connect() }
        harness.network.settle()
        #expect(harness.listener.accepted.count + other.accepted.count == 40)
        #expect(harness.listener.accepted.count > 5)
        #expect(other.accepted.count > 5)
    }

    @Test func descriptorsRunOutPerProcessAndAltogether() throws {
        let network = SimulatedNetwork(seed: 1)
        let system = network.makeSystem()
        system.process.descriptorLimit = 2
        let listener = try system.listen(Self.server, options: ListenOptions()).get()
        let client = network.makeSystem()
        _ = try client.connect(Self.server).get()
        _ = try client.connect(Self.server).get()
        network.settle()
        let first = try system.accept(listener).get()
        #expect(system.accept(listener) == .failure(.processDescriptorsExhausted))
        #expect(system.connect(Self.server) == .failure(.processDescriptorsExhausted))
        system.close(first.descriptor)
        network.descriptorLimit = network.openDescriptors
        #expect(system.accept(listener) == .failure(.systemDescriptorsExhausted))
        network.descriptorLimit += 1
        // The newcomer waited in the queue all along.
        #expect(throws: Never.self) { try system.accept(listener).get() }
        client.process.exhaustDescriptors(for: .seconds(1))
        #expect(client.connect(Self.server) == .failure(.processDescriptorsExhausted))
        network.descriptorLimit = 100
        network.run(for: .seconds(1))
        #expect(throws: Never.self) { try client.connect(Self.server).get() }
        #expect(system.process.openDescriptors == 2)
    }

    @Test func reorderingHappensOnlyBetweenConnections() throws {
        var faults = FaultPlan.calm
        faults.latency = .milliseconds(1) ... .milliseconds(50)
        faults.jitter = .zero ... .milliseconds(20)
        faults.segmentSize = 1...4
        let harness = try Harness(seed: 3, faults: faults)
        let pairs = try (0..<20).map { _ in try harness.pair() }
        for (index, pair) in pairs.enumerated() { pair.client.send("\(index): in order, always") }
        var order: [Int] = []
        harness.network.run(until: {
            for index in pairs.indices where !pairs[index].server.received.isEmpty && !order.contains(index) {
                order.append(index)
            }
            return order.count == 20
        })
        #expect(order != order.sorted(), "\(harness.network.trace)")
        harness.network.settle()
        for (index, pair) in pairs.enumerated() {
            #expect(pair.server.received == Array("\(index): in order, always".utf8))
        }
    }

    @Test func readsAndWritesAreShort() throws {
        var faults = FaultPlan.calm
        faults.shortRead = 1
        faults.shortWrite = 1
        let testbed = TransportTestbed(.simulation, seed: 5, faults: faults)
        let pair = try SocketPair(testbed)
        let bytes = [UInt8](repeating: 1, count: 1000)
        let taken = try (0..<20).map { _ in try pair.system.send(pair.a, bytes[...]).get() }
        #expect(taken.contains { $0 < 500 } && taken.allSatisfy { (1...1000).contains($0) })
        testbed.settle()
        guard case .bytes(let read) = pair.receive(pair.b, atMost: 10_000) else {
            Issue.record("nothing to read")
            return
        }
        #expect(read.count < taken.reduce(0, +))
    }

    @Test func injectedResetReachesBothEnds() throws {
        var faults = FaultPlan.calm
        faults.reset = 1
        faults.resetAfter = 10...10
        let harness = try Harness(seed: 2, faults: faults)
        let (client, server) = try harness.pair()
        client.send("0123456789")
        server.send("0123456789")
        harness.network.settle()
        #expect(client.failure == nil && server.failure == nil)
        client.send("x")
        server.send("x")
        harness.network.settle()
        #expect(client.failure == .reset && server.failure == .reset)
    }

    // MARK: Stalls

    @Test func stalledBytesAreDeliveredAfterTheStall() throws {
        let harness = try Harness()
        let (client, server) = try harness.pair()
        (harness.clients.system as? SimulatedSystem)?.stall(client.descriptor, for: .seconds(30))
        client.send("held up")
        client.finish()
        server.send("this way too")
        harness.network.run(for: .seconds(29))
        #expect(server.received.isEmpty && client.received.isEmpty && !server.sawEnd)
        harness.network.run(for: .seconds(2))
        #expect(server.received == Array("held up".utf8) && server.sawEnd)
        #expect(client.received == Array("this way too".utf8))
    }

    @Test func userTimeoutEndsAConnection() throws {
        let harness = try Harness()
        let (client, server) = try harness.pair()
        var options = SocketOptions()
        options.userTimeout = .seconds(10)
        _ = harness.clients.system.apply(options, to: client.descriptor)
        (harness.clients.system as? SimulatedSystem)?.stall(client.descriptor, for: nil)
        client.send("lost")
        harness.network.run(for: .milliseconds(9_900))
        #expect(client.failure == nil)
        harness.network.run(for: .milliseconds(200))
        #expect(client.failure == .timedOut)
        #expect(server.failure == nil && server.received.isEmpty)
    }

    @Test func peerThatNeverReadsIsGivenUpOnlyWithAUserTimeout() throws {
        for timeout in [nil, Duration.seconds(10)] {
            let harness = try Harness()
            harness.listener.acceptsReading = false
            let (client, _) = try harness.pair()
            var options = SocketOptions()
            options.userTimeout = timeout
            _ = harness.clients.system.apply(options, to: client.descriptor)
            client.send([UInt8](repeating: 1, count: 1 << 20))
            harness.network.run(for: .seconds(2_000))
            #expect(client.failure == (timeout == nil ? nil : .timedOut))
        }
    }

    @Test func keepAliveDetectsASilentPeer() throws {
        let harness = try Harness()
        let (client, server) = try harness.pair()
        for (system, peer) in [(harness.clients.system, client), (harness.servers.system, server)] {
            #expect(system.apply(SocketOptions(), to: peer.descriptor) == nil)
        }
        harness.network.run(for: .seconds(1_000))
        // All probes were answered; the simulation records the opening as the peer's last activity.
        client.send("a sign of life")
        harness.network.settle()
        (harness.clients.system as? SimulatedSystem)?.stall(client.descriptor, for: nil)
        // 60 s idle, then four probes every 15 s.
        harness.network.run(for: .seconds(119))
        #expect(client.failure == nil && server.failure == nil)
        harness.network.run(for: .seconds(2))
        #expect(client.failure == .timedOut && server.failure == .timedOut)
    }

    // MARK: Names

    @Test func namesAreResolved() throws {
        let network = SimulatedNetwork(seed: 1)
        let system = network.makeSystem()
        system.drive {
            var events = ReadyEvents()
            system.wait(&events, until: nil)
        }
        let other = SocketAddress.ipv6(high: 0x2001_0db8_0000_0000, low: 1, scope: 0, port: 0)
        network.names["a.example"] = .addresses([other, Self.server], after: .milliseconds(20))
        network.names["b.example"] = .failure(.temporarilyUnavailable)
        network.names["c.example"] = .silence
        var answers: [String: Result<[SocketAddress], ResolutionFailure>] = [:]
        for name in ["a.example", "b.example", "c.example", "d.example", "192.0.2.1"] {
            _ = system.resolve(name, port: 443) { answers[name] = $0 }
        }
        let cancelled = system.resolve("a.example", port: 1) { _ in Issue.record("cancelled, and called all the same") }
        system.cancelResolution(cancelled)
        #expect(answers.isEmpty)
        #expect(network.runUntilIdle() == .idle)
        #expect(answers["a.example"] == .success([other, Self.server].map { Self.withPort443($0) }))
        #expect(answers["b.example"] == .failure(.temporarilyUnavailable))
        #expect(answers["c.example"] == nil)
        #expect(answers["d.example"] == .failure(.nameNotFound))
        #expect(answers["192.0.2.1"] == .success([.ipv4(address: 0xc000_0201, port: 443)]))
    }

    private static func withPort443(_ address: SocketAddress) -> SocketAddress {
        switch address {
        case .ipv4(let bytes, _): .ipv4(address: bytes, port: 443)
        case .ipv6(let high, let low, let scope, _): .ipv6(high: high, low: low, scope: scope, port: 443)
        case .unix: address
        }
    }

    @Test func randomWordsComeFromTheSeed() {
        let words = [UInt64(1), 1, 2].map { SimulatedNetwork(seed: $0).makeSystem().randomWords(40) }
        #expect(words[0] == words[1] && words[0] != words[2])
        #expect(words[0].count == 32)
    }
}
