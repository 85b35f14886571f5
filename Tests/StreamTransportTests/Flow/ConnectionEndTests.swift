import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Closing, handing over and reusing descriptors, simulated and real")
struct ConnectionEndTests {
    typealias Kind = TransportTestbed.Kind

    @Test(arguments: Kind.allCases)
    func closeFollowsQueuedOutput(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        let bytes = harness.flood
        harness.perform {
            connection.write(bytes)
            connection.close(linger: .seconds(120))
        }
        #expect(harness.run { peer.sawEnd })
        #expect(peer.received.count == Int(connection.sentBytes))
        peer.close()
        #expect(harness.run { consumer.end == .closed })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func lingeringCloseDiscardsInput(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform {
            connection.write("refused, and this is why")
            connection.close(linger: .seconds(5))
        }
        peer.send([UInt8](repeating: 1, count: 1_000_000))
        #expect(harness.run { peer.sawEnd && peer.unsentBytes == 0 })
        #expect(peer.received == Array("refused, and this is why".utf8) && peer.failure == nil)
        #expect(consumer.received.isEmpty && consumer.end == nil)
        peer.finish()
        #expect(harness.run { consumer.end == .closed })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func lingeringConnectionDiscardsInputOfAShutInput(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform { connection.shutdownInput() }
        peer.send("nobody wants this")
        harness.testbed.settle()
        harness.perform {
            connection.write("the answer")
            connection.close(linger: .seconds(5))
        }
        #expect(harness.run { peer.sawEnd || peer.failure != nil })
        #expect(peer.received == Array("the answer".utf8) && peer.failure == nil)
        peer.finish()
        #expect(harness.run { consumer.end == .closed })
        harness.finish()
    }

    @Test func lingeringEndsAtItsDeadline() throws {
        let harness = try LoopHarness(.simulation)
        let (connection, consumer, peer) = try harness.connect()
        let network = try #require(harness.testbed.network)
        harness.perform { connection.close(linger: .seconds(3)) }
        let start = network.now
        #expect(harness.run { consumer.end != nil })
        #expect(consumer.end == .closed)
        #expect(start.duration(to: network.now) == .seconds(3))
        #expect(peer.sawEnd && peer.failure == nil)
        harness.finish()
    }

    @Test func closeIsAbandonedWhenThePeerStopsReading() throws {
        let harness = try LoopHarness(.simulation)
        let (connection, consumer, peer) = try harness.connect()
        peer.isReading = false
        harness.perform {
            connection.write([UInt8](repeating: 1, count: 1_000_000))
            connection.close(linger: .seconds(3))
        }
        #expect(harness.run { consumer.end != nil })
        // Not everything was sent: the peer must not take it for a clean end.
        #expect(consumer.end == .abandoned)
        peer.isReading = true
        #expect(harness.run { peer.failure == .reset })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func zeroLingerSendsOutputThatFitsTheKernel(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform {
            connection.write("last words")
            connection.close(linger: .zero)
        }
        #expect(harness.run { consumer.end != nil && peer.sawEnd })
        #expect(consumer.end == .closed)
        #expect(peer.received == Array("last words".utf8) && peer.failure == nil)
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func zeroLingerResetsWhenOutputIsLost(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        peer.isReading = false
        let bytes = harness.flood
        harness.perform {
            connection.write(bytes)
            connection.close(linger: .zero)
        }
        #expect(harness.run { consumer.end != nil })
        #expect(consumer.end == .abandoned)
        peer.isReading = true
        #expect(harness.run { peer.failure == .reset })
        #expect(!peer.sawEnd)
        harness.finish()
    }

    /// Later input is answered with a reset, also after a long silence.
    @Test(arguments: Kind.allCases)
    func inputBeforeAClosedPeerIsKept(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform { connection.pauseReading() }
        peer.send("last words")
        harness.testbed.settle()
        peer.close()
        harness.perform { connection.write("to nobody") }
        harness.testbed.settle()
        #expect(consumer.received.isEmpty && consumer.end == nil)
        harness.perform { connection.resumeReading() }
        #expect(harness.run { consumer.events.contains(.inputClosed) })
        #expect(consumer.text == "last words" && consumer.end == nil)
        harness.perform { connection.write("once more") }
        #expect(harness.run { consumer.end == .failed(.reset) })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func inputBeforeAClosedPeerOutlivesAFailedWrite(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        consumer.keepsUnreadInput = true
        harness.perform { connection.pauseReading() }
        peer.send("last words")
        harness.testbed.settle()
        peer.close()
        for text in ["to nobody", "once more", "and again"] {
            harness.perform { connection.write(text) }
            harness.testbed.settle()
        }
        #expect(consumer.end == nil && consumer.outputFailures == 1 && connection.queuedBytes == 0)
        harness.perform { connection.resumeReading() }
        #expect(harness.run { consumer.end == .failed(.reset) })
        #expect(consumer.text == "last words")
        harness.finish()
    }

    /// Nothing is left to wait for.
    @Test(arguments: Kind.allCases, [true, false])
    func connectionWithoutUnreadInputEndsWithItsFailedWrite(_ kind: Kind, _ isRefused: Bool) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        consumer.keepsUnreadInput = true
        harness.perform { connection.pauseReading() }
        if isRefused { peer.send("last words") }
        harness.testbed.settle()
        peer.close()
        for text in ["to nobody", "once more"] {
            harness.perform { connection.write(text) }
            harness.testbed.settle()
        }
        #expect((consumer.end == nil) == isRefused)
        if isRefused { harness.perform { connection.shutdownInput() } }
        #expect(harness.run { consumer.end == .failed(.reset) })
        #expect(consumer.received.isEmpty)
        harness.finish()
    }

    @Test func unresponsivePeerIsDetected() throws {
        let harness = try LoopHarness(.simulation)
        harness.collector.options.userTimeout = .seconds(20)
        let (connection, writer, _) = try harness.connect()
        let (idle, listener, _) = try harness.connect()
        let system = try #require(harness.loop.system as? SimulatedSystem)
        system.stall(connection.descriptor, for: nil)
        system.stall(idle.descriptor, for: nil)
        harness.perform { connection.write("anybody there?") }
        #expect(harness.run(atMost: .seconds(21)) { writer.end == .failed(.peerUnresponsive) })
        // Without bytes under way keep-alive notices, 120 s after the last sign of life.
        #expect(!harness.run(atMost: .seconds(97)) { listener.end != nil })
        #expect(harness.run(atMost: .seconds(5)) { listener.end == .failed(.peerUnresponsive) })
        harness.finish()
    }

    /// Linux alone would wait for the user timeout where that is longer, and not for all probes where it is shorter (tcp(7)).
    @Test(arguments: [Duration.seconds(300), .seconds(10)])
    func keepAliveDetectsALostIdlePeer(_ timeout: Duration) throws {
        let harness = try LoopHarness(.simulation)
        harness.collector.options.userTimeout = timeout
        let (connection, consumer, peer) = try harness.connect()
        harness.perform { connection.write("a sign of life") }
        #expect(harness.run { peer.received.count == 14 })
        try #require(harness.loop.system as? SimulatedSystem).stall(connection.descriptor, for: nil)
        // 60 s idle, then four probes every 15 s.
        #expect(!harness.run(atMost: .seconds(119)) { consumer.end != nil })
        #expect(harness.run(atMost: .seconds(2)) { consumer.end == .failed(.peerUnresponsive) })
        harness.finish()
    }

    @Test func userTimeoutDetectsALostBusyPeer() throws {
        let harness = try LoopHarness(.simulation)
        harness.collector.options.userTimeout = .seconds(20)
        let (connection, consumer, peer) = try harness.connect()
        for round in 1...3 {
            harness.perform { connection.write("a sign of life") }
            #expect(harness.run { peer.received.count == 14 * round })
            #expect(!harness.run(atMost: .seconds(100)) { consumer.end != nil })
        }
        harness.perform { connection.write("a sign of life") }
        #expect(harness.run { peer.received.count == 14 * 4 })
        try #require(harness.loop.system as? SimulatedSystem).stall(connection.descriptor, for: nil)
        #expect(!harness.run(atMost: .seconds(50)) { consumer.end != nil })
        harness.perform { connection.write("anybody there?") }
        #expect(!harness.run(atMost: .milliseconds(19_900)) { consumer.end != nil })
        #expect(harness.run(atMost: .milliseconds(200)) { consumer.end == .failed(.peerUnresponsive) })
        harness.finish()
    }

    @Test func connectionWithoutOutputHasNoTimer() throws {
        let harness = try LoopHarness(.simulation)
        harness.collector.options.userTimeout = .seconds(20)
        let (connection, _, peer) = try harness.connect()
        let before = harness.loop.timerCount
        for round in 1...200 {
            harness.perform { connection.write("message") }
            #expect(harness.run { peer.received.count == 7 * round })
            #expect(harness.loop.timerCount <= before + 1)
        }
        #expect(harness.run(atMost: .seconds(100)) { harness.loop.timerCount == 0 })
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func detachedDescriptorComesWithTheUnreadBytes(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        consumer.acceptedCount = { [unowned connection] _ in
            connection.pauseReading()
            return 4
        }
        peer.send("HEADrest")
        #expect(harness.run { consumer.text == "HEAD" })
        peer.send(" and more")
        var detached: DetachedSocket?
        harness.perform {
            connection.write("sent before")
            detached = connection.detach()
        }
        let socket = try #require(detached)
        #expect(socket.unread == Array("rest".utf8))
        #expect(consumer.events.isEmpty)

        let heir = RecordingConsumer()
        var second: SocketConnection?
        harness.perform {
            second = try? SocketConnection(
                adopting: socket.descriptor, peer: nil, on: harness.loop, unread: socket.unread)
            second?.consumer = heir
        }
        #expect(harness.run { heir.text == "rest and more" })
        harness.perform { second?.write(" and after") }
        #expect(harness.run { peer.received == Array("sent before and after".utf8) })
        harness.perform { second?.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func connectionWithQueuedBytesIsNotDetached(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, _, peer) = try harness.connect()
        peer.isReading = false
        let bytes = harness.flood
        harness.perform { connection.write(bytes) }
        harness.testbed.settle()
        harness.perform { #expect(connection.detach() == nil) }
        harness.perform { connection.reset() }
        harness.finish()
    }

    /// How many of them the consumer uses is known only when it returns.
    @Test(arguments: Kind.allCases)
    func detachingWithinAnOfferIsRefusedAndLosesNothing(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        var given: [DetachedSocket?] = []
        consumer.acceptedCount = { [unowned connection] _ in
            given.append(connection.detach())
            connection.pauseReading()
            return 2
        }
        peer.send("to the heir")
        #expect(harness.run { consumer.text == "to" })
        harness.perform { connection.resumeReading() }
        #expect(harness.run { consumer.text == "to t" })
        #expect(given.count == 2 && given.allSatisfy { $0 == nil })
        var detached: DetachedSocket?
        harness.perform { detached = connection.detach() }
        let socket = try #require(detached)
        #expect(socket.unread == Array("he heir".utf8))
        harness.perform { harness.loop.system.reset(socket.descriptor) }
        harness.finish()
    }

    // MARK: Reused descriptors

    @Test(arguments: Kind.allCases)
    func staleEventsDoNotReachTheNewOwnerOfADescriptor(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let first = try harness.connect()
        let second = try harness.connect()
        let waiting = try harness.host.connect(to: harness.listener.address)
        var adopted: (SocketConnection, RecordingConsumer)?
        // The connection that is notified first ends the other one and reuses its descriptor number, within one batch of
        // events.
        func swap(_ victim: SocketConnection) {
            guard adopted == nil else { return }
            victim.reset()
            let before = harness.collector.connections.count
            harness.listener.ready(.readable)
            guard harness.collector.connections.count > before, let connection = harness.collector.connections.last,
                let consumer = harness.collector.consumers.last
            else { return }
            #expect(kind == .sockets || connection.descriptor == victim.descriptor)
            adopted = (connection, consumer)
        }
        harness.perform { harness.listener.pause() }
        #expect(harness.run { waiting.isConnected })
        harness.testbed.settle()
        let (one, two) = (first.connection, second.connection)
        first.consumer.acceptedCount = { [unowned two] offered in
            swap(two)
            return offered
        }
        second.consumer.acceptedCount = { [unowned one] offered in
            swap(one)
            return offered
        }
        harness.perform {
            first.connection.pauseReading()
            second.connection.pauseReading()
        }
        first.peer.send("x")
        second.peer.send("x")
        harness.testbed.settle()
        harness.perform {
            harness.listener.resume()
            first.connection.resumeReading()
            second.connection.resumeReading()
        }
        #expect(harness.run { adopted != nil || harness.collector.connections.count > 2 })
        harness.testbed.settle()
        let heir = try #require(harness.collector.consumers.last)
        #expect(heir.offers.isEmpty && heir.events.isEmpty)
        waiting.send("mine")
        #expect(harness.run { heir.text == "mine" })
        harness.perform { for connection in harness.collector.connections { connection.reset() } }
        harness.finish()
    }
}
