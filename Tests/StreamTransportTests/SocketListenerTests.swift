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
        let meeting = try LoopMeeting(kind)
        #expect((meeting.listener.address.port ?? 0) > 0)
        let (connection, _, peer) = try meeting.connect()
        #expect(meeting.collector.peers == [try #require(meeting.host.system.localAddress(peer.descriptor))])
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    /// Without asking the system where it listens at one address alone, by asking where it listens at all of them.
    @Test(arguments: Kind.allCases, [UInt32(0x7f00_0001), 0])
    func acceptedConnectionHasItsLocalAddress(_ kind: Kind, _ address: UInt32) throws {
        let meeting = try LoopMeeting(kind, at: .ipv4(address: address, port: 0))
        let reached = SocketAddress.ipv4(address: 0x7f00_0001, port: try #require(meeting.listener.address.port))
        let (connection, _, _) = try meeting.connect(to: reached)
        #expect(connection.localAddress == reached)
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases.filter { $0 == .simulation || hasIPv6 })
    func ipv6AddressIsListenedOn(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind, at: Self.loopback6)
        let (connection, consumer, peer) = try meeting.connect()
        peer.send("six")
        #expect(meeting.run { consumer.text == "six" })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func unixSocketHasItsMode(_ kind: Kind) throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent("l\(UUID().uuidString).sock").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var options = ListenOptions()
        options.mode = 0o600
        let meeting = try LoopMeeting(kind, at: .unix(path: path), options: options)
        #expect(meeting.listener.address == .unix(path: path))
        if let network = meeting.ground.network {
            #expect(network.mode(ofSocketAt: path) == 0o600)
        } else {
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
        }
        let (connection, consumer, peer) = try meeting.connect()
        peer.send("local")
        peer.finish()
        #expect(meeting.run { consumer.events == [.inputClosed] })
        #expect(consumer.text == "local")
        meeting.perform {
            connection.write("answer")
            connection.close(linger: .zero)
        }
        #expect(meeting.run { peer.sawEnd && consumer.end == .closed })
        #expect(peer.received == Array("answer".utf8))
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func listeningDescriptorIsTakenOver(_ kind: Kind) throws {
        let ground = TransportTestbed(kind)
        let loop = try ground.makeLoop()
        let host = try ground.makeHost()
        let descriptor = try loop.system.listen(SocketPair.tcp, options: ListenOptions()).get()
        let collector = ConnectionCollector()
        let listener = try SocketListener(adopting: descriptor, on: loop, owner: collector)
        let peer = try host.connect(to: listener.address)
        #expect(ground.run(until: { collector.connections.count == 1 && peer.isConnected }))
        ground.perform(on: loop) {
            listener.close()
            for connection in collector.connections { connection.reset() }
        }
        #expect(ground.run(until: { peer.failure == .reset }))
        #expect(loop.watchedCount == 0)
        #expect(ground.close() == [])
    }

    @Test(arguments: Kind.allCases)
    func newcomersWaitWhileTheListenerIsPaused(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        meeting.perform { meeting.listener.pause() }
        let peer = try meeting.host.connect(to: meeting.listener.address)
        #expect(meeting.run { peer.isConnected })
        peer.send("I can wait")
        meeting.ground.settle()
        #expect(meeting.collector.connections.isEmpty)
        meeting.perform { meeting.listener.resume() }
        #expect(meeting.run { meeting.collector.consumers.first?.text == "I can wait" })
        meeting.perform { meeting.collector.connections[0].reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func closedListenerKeepsAcceptedConnections(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        let address = meeting.listener.address
        meeting.perform { meeting.listener.close() }
        let late = try meeting.host.connect(to: address)
        #expect(meeting.run { late.failure == .refused })
        peer.send("still here")
        #expect(meeting.run { consumer.text == "still here" })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func openConnectionsAreServedDuringABurstOfNewOnes(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (_, consumer, peer) = try meeting.connect()
        meeting.perform { meeting.listener.pause() }
        let burst = try (0..<100).map { _ in try meeting.host.connect(to: meeting.listener.address) }
        #expect(meeting.run { burst.allSatisfy { $0.isConnected } })
        var acceptedBefore: Int?
        consumer.acceptedCount = { offered in
            acceptedBefore = acceptedBefore ?? meeting.collector.connections.count
            return offered
        }
        meeting.perform { meeting.listener.resume() }
        peer.send("excuse me")
        #expect(meeting.run { meeting.collector.connections.count == 101 })
        #expect(meeting.run { consumer.text == "excuse me" })
        #expect((acceptedBefore ?? .max) <= 1 + 3 * SocketListener.acceptsPerTurn)
        consumer.acceptedCount = { $0 }
        meeting.perform { for connection in meeting.collector.connections { connection.reset() } }
        meeting.finish()
    }

    @Test func listenerAcceptsNoMoreThanItsShareInOneTurn() throws {
        let meeting = try LoopMeeting(.simulation)
        let network = try #require(meeting.ground.network)
        meeting.perform { meeting.listener.pause() }
        let burst = try (0..<40).map { _ in try meeting.host.connect(to: meeting.listener.address) }
        #expect(meeting.run { burst.allSatisfy { $0.isConnected } })
        network.settle()
        // From here on a turn takes time, so that connections accepted in one turn have the same instant.
        network.faults.turnCost = .microseconds(10) ... .microseconds(10)
        var perTurn: [MonotonicInstant: Int] = [:]
        meeting.collector.onAccepted = { _, _ in perTurn[network.now, default: 0] += 1 }
        meeting.perform { meeting.listener.resume() }
        #expect(meeting.run { meeting.collector.connections.count == 40 })
        #expect(perTurn.values.sorted() == [8, 16, 16])
        meeting.perform { for connection in meeting.collector.connections { connection.reset() } }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func loopsShareOnePort(_ kind: Kind) throws {
        let ground = TransportTestbed(kind)
        let loops = [try ground.makeLoop(), try ground.makeLoop()]
        let host = try ground.makeHost()
        var options = ListenOptions()
        options.portSharing = .join
        let collectors = [ConnectionCollector(), ConnectionCollector()]
        let first = try SocketListener(SocketPair.tcp, options: options, on: loops[0], owner: collectors[0])
        let second = try SocketListener(first.address, options: options, on: loops[1], owner: collectors[1])
        for _ in 0..<60 { _ = try host.connect(to: first.address) }
        #expect(ground.run(until: { collectors[0].connections.count + collectors[1].connections.count == 60 }))
        #expect(collectors.allSatisfy { $0.connections.count > 5 })
        for (loop, (listener, collector)) in zip(loops, zip([first, second], collectors)) {
            ground.perform(on: loop) {
                listener.close()
                for connection in collector.connections { connection.reset() }
            }
            #expect(loop.watchedCount == 0)
        }
        host.close()
        #expect(ground.close() == [])
    }

    // MARK: Out of descriptors

    @Test(arguments: [SystemError.processDescriptorsExhausted, .systemDescriptorsExhausted])
    func listenerPausesWithoutDescriptorsAndRecovers(_ exhaustion: SystemError) throws {
        let meeting = try LoopMeeting(.simulation)
        let network = try #require(meeting.ground.network)
        let process = try #require(meeting.loop.system as? SimulatedSystem).process
        let first = try meeting.connect()
        let waiting = try (0..<3).map { _ in try meeting.host.connect(to: meeting.listener.address) }
        if exhaustion == .processDescriptorsExhausted {
            process.descriptorLimit = process.openDescriptors
        } else {
            network.descriptorLimit = network.openDescriptors
        }
        // Paused and tried again: never in a circle without time passing, and said once.
        #expect(network.run(for: .milliseconds(190)) == .timeOver)
        #expect(meeting.collector.pauses == [exhaustion])
        #expect(meeting.collector.resumptions == 0)
        first.peer.send("unharmed")
        #expect(meeting.run { first.consumer.text == "unharmed" })
        #expect(waiting.allSatisfy { $0.isConnected && $0.failure == nil })
        process.descriptorLimit = 100
        network.descriptorLimit = 100
        #expect(meeting.run(atMost: .milliseconds(100)) { meeting.collector.connections.count == 4 })
        #expect(meeting.collector.resumptions == 1)
        meeting.perform { for connection in meeting.collector.connections { connection.reset() } }
        meeting.finish()
    }

    @Test func listenerClosesWhileItWaitsForDescriptors() throws {
        let meeting = try LoopMeeting(.simulation)
        let process = try #require(meeting.loop.system as? SimulatedSystem).process
        process.descriptorLimit = process.openDescriptors
        let peer = try meeting.host.connect(to: meeting.listener.address)
        #expect(meeting.run { !meeting.collector.pauses.isEmpty })
        meeting.perform { meeting.listener.close() }
        #expect(meeting.run { peer.failure == .reset })
        meeting.ground.network?.run(for: .seconds(1))
        #expect(meeting.collector.resumptions == 0)
        meeting.finish()
    }
}
