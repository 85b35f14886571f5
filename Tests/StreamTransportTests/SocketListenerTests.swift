import Foundation
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("A listener on a loop, simulated and real")
struct SocketListenerTests {
    typealias Kind = TransportTestbed.Kind

    /// Whether this machine has the IPv6 loopback address; containers often lack it.
    static var hasIPv6: Bool {
        guard let system = try? LinuxSystem(), let listener = try? system.listen(Self.loopback6, options: .init()).get()
        else { return false }
        system.close(listener)
        return true
    }

    static let loopback6 = SocketAddress.ipv6(high: 0, low: 1, scope: 0, port: 0)

    @Test(arguments: Kind.allCases)
    func portZeroIsReplacedByAFreePort(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        #expect((harness.listener.address.port ?? 0) > 0)
        let (connection, _, peer) = try harness.connect()
        #expect(harness.collector.peers == [try #require(harness.host.system.localAddress(peer.descriptor))])
        harness.perform { connection.reset() }
        harness.finish()
    }

    /// Without asking the system where it listens at one address alone, by asking where it listens at all of them.
    @Test(arguments: Kind.allCases, [UInt32(0x7f00_0001), 0])
    func acceptedConnectionHasItsLocalAddress(_ kind: Kind, _ address: UInt32) throws {
        let harness = try LoopHarness(kind, at: .ipv4(address: address, port: 0))
        let reached = SocketAddress.ipv4(address: 0x7f00_0001, port: try #require(harness.listener.address.port))
        let (connection, _, _) = try harness.connect(to: reached)
        #expect(connection.localAddress == reached)
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases.filter { $0 == .simulation || hasIPv6 })
    func ipv6AddressIsListenedOn(_ kind: Kind) throws {
        let harness = try LoopHarness(kind, at: Self.loopback6)
        let (connection, consumer, peer) = try harness.connect()
        peer.send("six")
        #expect(harness.run { consumer.text == "six" })
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func unixSocketHasItsMode(_ kind: Kind) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("l\(UUID().uuidString).sock").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var options = ListenOptions()
        options.mode = 0o600
        let harness = try LoopHarness(kind, at: .unix(path: path), options: options)
        #expect(harness.listener.address == .unix(path: path))
        if let network = harness.testbed.network {
            #expect(network.mode(ofSocketAt: path) == 0o600)
        } else {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        let (connection, consumer, peer) = try harness.connect()
        peer.send("local")
        peer.finish()
        #expect(harness.run { consumer.events == [.inputClosed] })
        #expect(consumer.text == "local")
        harness.perform {
            connection.write("answer")
            connection.close(linger: .zero)
        }
        #expect(harness.run { peer.sawEnd && consumer.end == .closed })
        #expect(peer.received == Array("answer".utf8))
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func listeningDescriptorIsTakenOver(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let loop = try testbed.makeLoop()
        let host = try testbed.makeHost()
        let descriptor = try loop.system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let collector = ConnectionCollector()
        let listener = try SocketListener(adopting: descriptor, on: loop, owner: collector)
        let peer = try host.connect(to: listener.address)
        #expect(testbed.run(until: { collector.connections.count == 1 && peer.isConnected }))
        testbed.perform(on: loop) {
            listener.close()
            for connection in collector.connections { connection.reset() }
        }
        #expect(testbed.run(until: { peer.failure == .reset }))
        #expect(loop.watchedCount == 0)
        #expect(testbed.close() == [])
    }

    @Test(arguments: Kind.allCases)
    func newcomersWaitWhileTheListenerIsPaused(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        harness.perform { harness.listener.pause() }
        let peer = try harness.host.connect(to: harness.listener.address)
        #expect(harness.run { peer.isConnected })
        peer.send("I can wait")
        harness.testbed.settle()
        #expect(harness.collector.connections.isEmpty)
        harness.perform { harness.listener.resume() }
        #expect(harness.run { harness.collector.consumers.first?.text == "I can wait" })
        harness.perform { harness.collector.connections[0].reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func closedListenerKeepsAcceptedConnections(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        let address = harness.listener.address
        harness.perform { harness.listener.close() }
        let late = try harness.host.connect(to: address)
        #expect(harness.run { late.failure == .refused })
        peer.send("still here")
        #expect(harness.run { consumer.text == "still here" })
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func openConnectionsAreServedDuringABurstOfNewOnes(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (_, consumer, peer) = try harness.connect()
        harness.perform { harness.listener.pause() }
        let burst = try (0..<100).map { _ in try harness.host.connect(to: harness.listener.address) }
        #expect(harness.run { burst.allSatisfy { $0.isConnected } })
        var acceptedBefore: Int?
        consumer.acceptedCount = { offered in
            acceptedBefore = acceptedBefore ?? harness.collector.connections.count
            return offered
        }
        harness.perform { harness.listener.resume() }
        peer.send("excuse me")
        #expect(harness.run { harness.collector.connections.count == 101 })
        #expect(harness.run { consumer.text == "excuse me" })
        #expect((acceptedBefore ?? .max) <= 1 + 3 * SocketListener.acceptsPerTurn)
        consumer.acceptedCount = { $0 }
        harness.perform { for connection in harness.collector.connections { connection.reset() } }
        harness.finish()
    }

    @Test func listenerAcceptsNoMoreThanItsShareInOneTurn() throws {
        let harness = try LoopHarness(.simulation)
        let network = try #require(harness.testbed.network)
        harness.perform { harness.listener.pause() }
        let burst = try (0..<40).map { _ in try harness.host.connect(to: harness.listener.address) }
        #expect(harness.run { burst.allSatisfy { $0.isConnected } })
        network.settle()
        // From here on a turn takes time, so that connections accepted in one turn have the same instant.
        network.faults.turnCost = .microseconds(10) ... .microseconds(10)
        var perTurn: [MonotonicInstant: Int] = [:]
        harness.collector.onAccepted = { _, _ in perTurn[network.now, default: 0] += 1 }
        harness.perform { harness.listener.resume() }
        #expect(harness.run { harness.collector.connections.count == 40 })
        #expect(perTurn.values.sorted() == [8, 16, 16])
        harness.perform { for connection in harness.collector.connections { connection.reset() } }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func loopsShareOnePort(_ kind: Kind) throws {
        let testbed = TransportTestbed(kind)
        let loops = [try testbed.makeLoop(), try testbed.makeLoop()]
        let host = try testbed.makeHost()
        var options = ListenOptions()
        options.portSharing = .join
        let collectors = [ConnectionCollector(), ConnectionCollector()]
        let first = try SocketListener(SocketPair.tcp, options: options, on: loops[0], owner: collectors[0])
        let second = try SocketListener(first.address, options: options, on: loops[1], owner: collectors[1])
        for _ in 0..<60 { _ = try host.connect(to: first.address) }
        #expect(testbed.run(until: { collectors[0].connections.count + collectors[1].connections.count == 60 }))
        #expect(collectors.allSatisfy { $0.connections.count > 5 })
        for (loop, (listener, collector)) in zip(loops, zip([first, second], collectors)) {
            testbed.perform(on: loop) {
                listener.close()
                for connection in collector.connections { connection.reset() }
            }
            #expect(loop.watchedCount == 0)
        }
        host.close()
        #expect(testbed.close() == [])
    }

    // MARK: Out of descriptors

    @Test(arguments: [SystemError.processDescriptorsExhausted, .systemDescriptorsExhausted])
    func listenerPausesWithoutDescriptorsAndRecovers(_ exhaustion: SystemError) throws {
        let harness = try LoopHarness(.simulation)
        let network = try #require(harness.testbed.network)
        let process = try #require(harness.loop.system as? SimulatedSystem).process
        let first = try harness.connect()
        let waiting = try (0..<3).map { _ in try harness.host.connect(to: harness.listener.address) }
        if exhaustion == .processDescriptorsExhausted {
            process.descriptorLimit = process.openDescriptors
        } else {
            network.descriptorLimit = network.openDescriptors
        }
        // Paused and tried again: never in a circle without time passing, and said once.
        #expect(network.run(for: .milliseconds(190)) == .timeOver)
        #expect(harness.collector.pauses == [exhaustion])
        #expect(harness.collector.resumptions == 0)
        first.peer.send("unharmed")
        #expect(harness.run { first.consumer.text == "unharmed" })
        #expect(waiting.allSatisfy { $0.isConnected && $0.failure == nil })
        process.descriptorLimit = 100
        network.descriptorLimit = 100
        #expect(harness.run(atMost: .milliseconds(100)) { harness.collector.connections.count == 4 })
        #expect(harness.collector.resumptions == 1)
        harness.perform { for connection in harness.collector.connections { connection.reset() } }
        harness.finish()
    }

    @Test func listenerClosesWhileItWaitsForDescriptors() throws {
        let harness = try LoopHarness(.simulation)
        let process = try #require(harness.loop.system as? SimulatedSystem).process
        process.descriptorLimit = process.openDescriptors
        let peer = try harness.host.connect(to: harness.listener.address)
        #expect(harness.run { !harness.collector.pauses.isEmpty })
        harness.perform { harness.listener.close() }
        #expect(harness.run { peer.failure == .reset })
        harness.testbed.network?.run(for: .seconds(1))
        #expect(harness.collector.resumptions == 0)
        harness.finish()
    }
}
