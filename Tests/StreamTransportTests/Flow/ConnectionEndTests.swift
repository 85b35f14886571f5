import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Closing, handing over and reusing descriptors, simulated and real")
struct ConnectionEndTests {
    typealias Kind = TransportTestbed.Kind

    @Test(arguments: Kind.allCases)
    func closeFollowsQueuedOutput(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        let bytes = meeting.flood
        meeting.perform {
            connection.write(bytes)
            connection.close(linger: .seconds(5))
        }
        #expect(meeting.run { peer.sawEnd })
        #expect(peer.received.count == Int(connection.sentBytes))
        peer.close()
        #expect(meeting.run { consumer.end == .closed })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func lingeringCloseDiscardsInput(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform {
            connection.write("refused, and this is why")
            connection.close(linger: .seconds(5))
        }
        peer.send([UInt8](repeating: 1, count: 1_000_000))
        #expect(meeting.run { peer.sawEnd && peer.unsentBytes == 0 })
        #expect(peer.received == Array("refused, and this is why".utf8) && peer.failure == nil)
        #expect(consumer.received.isEmpty && consumer.end == nil)
        peer.finish()
        #expect(meeting.run { consumer.end == .closed })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func lingeringConnectionDiscardsInputOfAShutInput(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.shutdownInput() }
        peer.send("nobody wants this")
        meeting.ground.settle()
        meeting.perform {
            connection.write("the answer")
            connection.close(linger: .seconds(5))
        }
        #expect(meeting.run { peer.sawEnd || peer.failure != nil })
        #expect(peer.received == Array("the answer".utf8) && peer.failure == nil)
        peer.finish()
        #expect(meeting.run { consumer.end == .closed })
        meeting.finish()
    }

    @Test func lingeringEndsAtItsDeadline() throws {
        let meeting = try LoopMeeting(.simulation)
        let (connection, consumer, peer) = try meeting.connect()
        let network = try #require(meeting.ground.network)
        meeting.perform { connection.close(linger: .seconds(3)) }
        let start = network.now
        #expect(meeting.run { consumer.end != nil })
        #expect(consumer.end == .closed)
        #expect(start.duration(to: network.now) == .seconds(3))
        #expect(peer.sawEnd && peer.failure == nil)
        meeting.finish()
    }

    @Test func closeIsAbandonedWhenThePeerStopsReading() throws {
        let meeting = try LoopMeeting(.simulation)
        let (connection, consumer, peer) = try meeting.connect()
        peer.isReading = false
        meeting.perform {
            connection.write([UInt8](repeating: 1, count: 1_000_000))
            connection.close(linger: .seconds(3))
        }
        #expect(meeting.run { consumer.end != nil })
        // Not everything was sent: the peer must not take it for a clean end.
        #expect(consumer.end == .abandoned)
        peer.isReading = true
        #expect(meeting.run { peer.failure == .reset })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func zeroLingerSendsOutputThatFitsTheKernel(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform {
            connection.write("last words")
            connection.close(linger: .zero)
        }
        #expect(meeting.run { consumer.end != nil && peer.sawEnd })
        #expect(consumer.end == .closed)
        #expect(peer.received == Array("last words".utf8) && peer.failure == nil)
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func zeroLingerResetsWhenOutputIsLost(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        peer.isReading = false
        let bytes = meeting.flood
        meeting.perform {
            connection.write(bytes)
            connection.close(linger: .zero)
        }
        #expect(meeting.run { consumer.end != nil })
        #expect(consumer.end == .abandoned)
        peer.isReading = true
        #expect(meeting.run { peer.failure == .reset })
        #expect(!peer.sawEnd)
        meeting.finish()
    }

    /// Later input is answered with a reset, also after a long silence.
    @Test(arguments: Kind.allCases)
    func inputBeforeAClosedPeerIsKept(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.pauseReading() }
        peer.send("last words")
        meeting.ground.settle()
        peer.close()
        meeting.perform { connection.write("to nobody") }
        meeting.ground.settle()
        #expect(consumer.received.isEmpty && consumer.end == nil)
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { consumer.events.contains(.inputClosed) })
        #expect(consumer.text == "last words" && consumer.end == nil)
        meeting.perform { connection.write("once more") }
        #expect(meeting.run { consumer.end == .failed(.reset) })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func inputBeforeAClosedPeerOutlivesAFailedWrite(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.keepsUnreadInput = true
        meeting.perform { connection.pauseReading() }
        peer.send("last words")
        meeting.ground.settle()
        peer.close()
        for text in ["to nobody", "once more", "and again"] {
            meeting.perform { connection.write(text) }
            meeting.ground.settle()
        }
        #expect(consumer.end == nil && consumer.outputFailures == 1 && connection.queuedBytes == 0)
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { consumer.end == .failed(.reset) })
        #expect(consumer.text == "last words")
        meeting.finish()
    }

    /// Nothing is left to wait for.
    @Test(arguments: Kind.allCases, [true, false])
    func connectionWithoutUnreadInputEndsWithItsFailedWrite(_ kind: Kind, _ isRefused: Bool) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.keepsUnreadInput = true
        meeting.perform { connection.pauseReading() }
        if isRefused { peer.send("last words") }
        meeting.ground.settle()
        peer.close()
        for text in ["to nobody", "once more"] {
            meeting.perform { connection.write(text) }
            meeting.ground.settle()
        }
        #expect((consumer.end == nil) == isRefused)
        if isRefused { meeting.perform { connection.shutdownInput() } }
        #expect(meeting.run { consumer.end == .failed(.reset) })
        #expect(consumer.received.isEmpty)
        meeting.finish()
    }

    @Test func unresponsivePeerIsDetected() throws {
        let meeting = try LoopMeeting(.simulation)
        meeting.collector.options.userTimeout = .seconds(20)
        let (connection, writer, _) = try meeting.connect()
        let (idle, listener, _) = try meeting.connect()
        let system = try #require(meeting.loop.system as? SimulatedSystem)
        system.stall(connection.descriptor, for: nil)
        system.stall(idle.descriptor, for: nil)
        meeting.perform { connection.write("anybody there?") }
        #expect(meeting.run(atMost: .seconds(21)) { writer.end == .failed(.peerUnresponsive) })
        // Without bytes under way keep-alive notices, 120 s after the last sign of life.
        #expect(!meeting.run(atMost: .seconds(97)) { listener.end != nil })
        #expect(meeting.run(atMost: .seconds(5)) { listener.end == .failed(.peerUnresponsive) })
        meeting.finish()
    }

    /// Linux alone would wait for the user timeout where that is longer, and not for all probes where it is shorter (tcp(7)).
    @Test(arguments: [Duration.seconds(300), .seconds(10)])
    func keepAliveDetectsALostIdlePeer(_ timeout: Duration) throws {
        let meeting = try LoopMeeting(.simulation)
        meeting.collector.options.userTimeout = timeout
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.write("a sign of life") }
        #expect(meeting.run { peer.received.count == 14 })
        try #require(meeting.loop.system as? SimulatedSystem).stall(connection.descriptor, for: nil)
        // 60 s idle, then four probes every 15 s.
        #expect(!meeting.run(atMost: .seconds(119)) { consumer.end != nil })
        #expect(meeting.run(atMost: .seconds(2)) { consumer.end == .failed(.peerUnresponsive) })
        meeting.finish()
    }

    @Test func userTimeoutDetectsALostBusyPeer() throws {
        let meeting = try LoopMeeting(.simulation)
        meeting.collector.options.userTimeout = .seconds(20)
        let (connection, consumer, peer) = try meeting.connect()
        for round in 1...3 {
            meeting.perform { connection.write("a sign of life") }
            #expect(meeting.run { peer.received.count == 14 * round })
            #expect(!meeting.run(atMost: .seconds(100)) { consumer.end != nil })
        }
        meeting.perform { connection.write("a sign of life") }
        #expect(meeting.run { peer.received.count == 14 * 4 })
        try #require(meeting.loop.system as? SimulatedSystem).stall(connection.descriptor, for: nil)
        #expect(!meeting.run(atMost: .seconds(50)) { consumer.end != nil })
        meeting.perform { connection.write("anybody there?") }
        #expect(!meeting.run(atMost: .milliseconds(19_900)) { consumer.end != nil })
        #expect(meeting.run(atMost: .milliseconds(200)) { consumer.end == .failed(.peerUnresponsive) })
        meeting.finish()
    }

    @Test func connectionWithoutOutputHasNoTimer() throws {
        let meeting = try LoopMeeting(.simulation)
        meeting.collector.options.userTimeout = .seconds(20)
        let (connection, _, peer) = try meeting.connect()
        let before = meeting.loop.timerCount
        for round in 1...200 {
            meeting.perform { connection.write("message") }
            #expect(meeting.run { peer.received.count == 7 * round })
            #expect(meeting.loop.timerCount <= before + 1)
        }
        #expect(meeting.run(atMost: .seconds(100)) { meeting.loop.timerCount == 0 })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func detachedDescriptorComesWithTheUnreadBytes(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.acceptedCount = { [unowned connection] _ in
            connection.pauseReading()
            return 4
        }
        peer.send("HEADrest")
        #expect(meeting.run { consumer.text == "HEAD" })
        peer.send(" and more")
        var detached: DetachedSocket?
        meeting.perform {
            connection.write("sent before")
            detached = connection.detach()
        }
        let socket = try #require(detached)
        #expect(socket.unread == Array("rest".utf8))
        #expect(consumer.events.isEmpty)

        let heir = RecordingConsumer()
        var second: SocketConnection?
        meeting.perform {
            second = try? SocketConnection(
                adopting: socket.descriptor, peer: nil, on: meeting.loop, unread: socket.unread)
            second?.consumer = heir
        }
        #expect(meeting.run { heir.text == "rest and more" })
        meeting.perform { second?.write(" and after") }
        #expect(meeting.run { peer.received == Array("sent before and after".utf8) })
        meeting.perform { second?.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func connectionWithQueuedBytesIsNotDetached(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, _, peer) = try meeting.connect()
        peer.isReading = false
        let bytes = meeting.flood
        meeting.perform { connection.write(bytes) }
        meeting.ground.settle()
        meeting.perform { #expect(connection.detach() == nil) }
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    /// How many of them the consumer uses is known only when it returns.
    @Test(arguments: Kind.allCases)
    func detachingWithinAnOfferIsRefusedAndLosesNothing(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        var given: [DetachedSocket?] = []
        consumer.acceptedCount = { [unowned connection] _ in
            given.append(connection.detach())
            connection.pauseReading()
            return 2
        }
        peer.send("to the heir")
        #expect(meeting.run { consumer.text == "to" })
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { consumer.text == "to t" })
        #expect(given.count == 2 && given.allSatisfy { $0 == nil })
        var detached: DetachedSocket?
        meeting.perform { detached = connection.detach() }
        let socket = try #require(detached)
        #expect(socket.unread == Array("he heir".utf8))
        meeting.perform { meeting.loop.system.reset(socket.descriptor) }
        meeting.finish()
    }

    // MARK: Reused descriptors

    @Test(arguments: Kind.allCases)
    func staleEventsDoNotReachTheNewOwnerOfADescriptor(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let first = try meeting.connect()
        let second = try meeting.connect()
        let waiting = try meeting.host.connect(to: meeting.listener.address)
        var adopted: (SocketConnection, RecordingConsumer)?
        // The connection that is notified first ends the other one and reuses its descriptor number, within one batch of
        // events.
        func swap(_ victim: SocketConnection) {
            guard adopted == nil else { return }
            victim.reset()
            let before = meeting.collector.connections.count
            meeting.listener.ready(.readable)
            guard meeting.collector.connections.count > before, let connection = meeting.collector.connections.last,
                let consumer = meeting.collector.consumers.last
            else { return }
            #expect(kind == .sockets || connection.descriptor == victim.descriptor)
            adopted = (connection, consumer)
        }
        meeting.perform { meeting.listener.pause() }
        #expect(meeting.run { waiting.isConnected })
        meeting.ground.settle()
        let (one, two) = (first.connection, second.connection)
        first.consumer.acceptedCount = { [unowned two] offered in
            swap(two)
            return offered
        }
        second.consumer.acceptedCount = { [unowned one] offered in
            swap(one)
            return offered
        }
        meeting.perform {
            first.connection.pauseReading()
            second.connection.pauseReading()
        }
        first.peer.send("x")
        second.peer.send("x")
        meeting.ground.settle()
        meeting.perform {
            meeting.listener.resume()
            first.connection.resumeReading()
            second.connection.resumeReading()
        }
        #expect(meeting.run { adopted != nil || meeting.collector.connections.count > 2 })
        meeting.ground.settle()
        let heir = try #require(meeting.collector.consumers.last)
        #expect(heir.offers.isEmpty && heir.events.isEmpty)
        waiting.send("mine")
        #expect(meeting.run { heir.text == "mine" })
        meeting.perform { for connection in meeting.collector.connections { connection.reset() } }
        meeting.finish()
    }
}
