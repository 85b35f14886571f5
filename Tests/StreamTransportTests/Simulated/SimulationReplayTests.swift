import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("A seed replays a simulation exactly")
struct SimulationReplayTests {
    private static let server = SocketAddress.ipv4(address: 0x0a01_0101, port: 80)

    /// Thirty clients talk to an echo through every fault there is.
    private struct Load {
        let network: SimulatedNetwork
        let clients: [ScriptedPeer]
        let listener: ScriptedListener
        let hosts: [ScriptedHost]
        let bytes: [[UInt8]]

        init(seed: UInt64, faults: FaultPlan) throws {
            let network = SimulatedNetwork(seed: seed, faults: faults, traceLength: 50)
            self.network = network
            self.hosts = (0..<3).map { _ in ScriptedHost(on: network.makeSystem()) }
            network.faults.exhaustion = 0
            self.listener = try self.hosts[0].listen(at: SimulationReplayTests.server)
            network.faults.exhaustion = faults.exhaustion
            var chance = SeededGenerator(seed: seed)
            var clients: [ScriptedPeer] = []
            var bytes: [[UInt8]] = []
            for index in 0..<30 {
                guard let client = try? self.hosts[1 + index % 2].connect(to: SimulationReplayTests.server) else {
                    continue
                }
                let said = chance.bytes(Int.random(in: 0...8_000, using: &chance))
                client.send(said)
                client.finish()
                clients.append(client)
                bytes.append(said)
            }
            self.clients = clients
            self.bytes = bytes
        }

        func run() {
            var finished: Set<ObjectIdentifier> = []
            for (index, host) in self.hosts.enumerated() {
                (host.system as? SimulatedSystem)?.drive {
                    host.turn()
                    if index == 0 { self.echo(&finished) }
                }
            }
            self.network.run(for: .seconds(600))
        }

        private func echo(_ finished: inout Set<ObjectIdentifier>) {
            for peer in self.listener.accepted where !peer.isClosed {
                let heard = peer.takeReceived()
                if !heard.isEmpty { peer.send(heard) }
                if peer.sawEnd, finished.insert(ObjectIdentifier(peer)).inserted { peer.finish() }
            }
        }
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func sameSeedGivesTheSameTrace(_ seed: UInt64) throws {
        let runs = try (0..<2).map { _ in
            let load = try Load(seed: seed, faults: .rough)
            load.run()
            return load.network.trace
        }
        #expect(runs[0].count > 500)
        #expect(runs[0].count == runs[1].count)
        #expect(runs[0].fingerprint == runs[1].fingerprint)
        #expect(runs[0].description == runs[1].description)
        #expect(runs[0].description.hasPrefix("seed \(seed), "))
    }

    @Test func anotherSeedGivesAnotherTrace() throws {
        let runs = try [UInt64(1), 2].map { seed in
            let load = try Load(seed: seed, faults: .rough)
            load.run()
            return load.network.trace.fingerprint
        }
        #expect(runs[0] != runs[1])
    }

    @Test(arguments: 0..<40)
    func noByteIsLostOrInvented(_ seed: Int) throws {
        let load = try Load(seed: UInt64(seed), faults: .rough)
        load.run()
        var whole = 0
        for (client, said) in zip(load.clients, load.bytes) {
            #expect(said.starts(with: client.received), "seed \(seed)\n\(load.network.trace)")
            if client.sawEnd, client.failure == nil {
                #expect(client.received == said, "seed \(seed)\n\(load.network.trace)")
                whole += 1
            } else {
                #expect(client.failure != nil, "seed \(seed): neither ended nor failed\n\(load.network.trace)")
            }
        }
        #expect(whole > 10, "seed \(seed)")
        #expect(load.network.misuses.isEmpty, "seed \(seed)")
    }
}
