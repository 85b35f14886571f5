import StreamTransport
import TestSupport
import Testing

@Suite("A connection on a loop, simulated and real")
struct SocketConnectionTests {
    typealias Kind = TransportGround.Kind

    @Test(arguments: Kind.allCases)
    func echoesAndEndsCleanly(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        peer.send("hello")
        #expect(meeting.run { consumer.text == "hello" })
        meeting.perform { connection.write("hello yourself") }
        #expect(meeting.run { peer.received.count == 14 })
        #expect(connection.writtenBytes == 14 && connection.sentBytes == 14)
        #expect(connection.localAddress == meeting.listener.address)
        #expect(connection.peerAddress == meeting.host.system.localAddress(peer.descriptor))
        meeting.perform { connection.close(linger: .seconds(1)) }
        #expect(meeting.run { peer.sawEnd })
        #expect(consumer.end == nil)
        peer.finish()
        #expect(meeting.run { consumer.end == .closed })
        #expect(peer.received == Array("hello yourself".utf8) && peer.failure == nil)
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func sendsWhatOneTurnWroteInOneCall(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, _, peer) = try meeting.connect()
        meeting.perform {
            for piece in ["one ", "two ", "three"] { connection.write(piece) }
            #expect(connection.sentBytes == 0 && connection.queuedBytes == 13)
        }
        #expect(meeting.run { peer.received == Array("one two three".utf8) })
        if let trace = meeting.ground.network?.trace {
            #expect(trace.description.split(separator: "\n").filter { $0.contains("  sent  ") }.count == 1)
        }
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func fillsAWriteInPlace(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, _, peer) = try meeting.connect()
        meeting.perform {
            connection.write("a")
            connection.write(reserving: 10) { bytes in
                bytes.storeBytes(of: 0x62, as: UInt8.self)
                bytes.storeBytes(of: 0x63, toByteOffset: 1, as: UInt8.self)
                return 2
            }
            connection.write(reserving: 5) { _ in 0 }
            let last = Array("d".utf8)
            connection.writeThrough(last.span.bytes)
        }
        #expect(meeting.run { peer.received == Array("abcd".utf8) })
        #expect(connection.writtenBytes == 4)
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func keepsTheOtherDirectionOpenAfterEitherHalfClose(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        peer.send("question")
        peer.finish()
        #expect(meeting.run { consumer.events == [.inputClosed] })
        #expect(consumer.text == "question")
        meeting.perform { connection.write("answer") }
        #expect(meeting.run { peer.received == Array("answer".utf8) })
        #expect(!peer.sawEnd)
        meeting.perform { connection.shutdownOutput() }
        #expect(meeting.run { peer.sawEnd })
        #expect(consumer.end == nil)
        meeting.perform { connection.close(linger: .seconds(1)) }
        #expect(meeting.run { consumer.end == .closed })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func goesOnReadingAfterItsOwnHalfClose(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform {
            connection.write("all I have to say")
            connection.shutdownOutput()
            connection.write("ignored")
        }
        #expect(meeting.run { peer.sawEnd })
        #expect(peer.received == Array("all I have to say".utf8))
        peer.send("and more")
        #expect(meeting.run { consumer.text == "and more" })
        peer.finish()
        #expect(meeting.run { consumer.events == [.inputClosed] })
        meeting.perform { connection.close(linger: .zero) }
        #expect(meeting.run { consumer.end == .closed })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func tellsAResetFromAnEnd(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (_, ended, clean) = try meeting.connect()
        let (_, failed, unclean) = try meeting.connect()
        clean.close()
        unclean.reset()
        #expect(meeting.run { ended.events == [.inputClosed] && failed.events == [.ended(.failed(.reset))] })
        meeting.perform { for connection in meeting.collector.connections { connection.close(linger: .zero) } }
        #expect(meeting.run { ended.end == .closed })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func tellsAResetAfterTheBytesBeforeIt(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (_, consumer, peer) = try meeting.connect()
        peer.send("last words")
        meeting.ground.settle(rounds: 0)
        peer.reset()
        #expect(meeting.run { consumer.end != nil })
        #expect(consumer.text == "last words")
        #expect(consumer.events == [.ended(.failed(.reset))])
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func readsWhatThePeerSaidBeforeAResetThatAWriteMet(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.pauseReading() }
        peer.send("goodbye")
        meeting.ground.settle()
        meeting.perform {
            connection.resumeReading()
            peer.reset()
        }
        meeting.perform { connection.write("too late") }
        #expect(meeting.run { consumer.end != nil })
        #expect(consumer.text == "goodbye")
        #expect(consumer.events.last == .ended(.failed(.reset)))
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func resetsOnDemandAndThePeerKnows(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform {
            connection.write("never sent")
            connection.reset()
            connection.write("ignored")
        }
        #expect(meeting.run { peer.failure == .reset })
        #expect(peer.received.isEmpty && !peer.sawEnd)
        #expect(consumer.events == [.ended(.abandoned)])
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func tellsAPausedReaderOfAReset(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.pauseReading() }
        peer.reset()
        #expect(meeting.run { consumer.end == .failed(.reset) })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func keepsACleanEndForAPausedReader(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform {
            connection.pauseReading()
            connection.shutdownOutput()
        }
        peer.send("read me later")
        peer.finish()
        meeting.ground.settle()
        #expect(consumer.received.isEmpty && consumer.events.isEmpty)
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { consumer.events == [.inputClosed] })
        #expect(consumer.text == "read me later")
        meeting.perform { connection.close(linger: .zero) }
        #expect(meeting.run { consumer.end == .closed })
        meeting.finish()
    }

    // MARK: What a consumer leaves

    @Test(arguments: Kind.allCases)
    func offersAgainWhatWasLeftInFrontOfWhatComesNext(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.takes = { offered in offered < 6 ? 0 : offered }
        peer.send("abc")
        #expect(meeting.run { consumer.offers == [3] })
        meeting.ground.settle()
        // Not offered again while nothing new came.
        #expect(consumer.offers == [3])
        peer.send("def")
        #expect(meeting.run { consumer.text == "abcdef" })
        #expect(consumer.offers == [3, 6])
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func offersWhatWasLeftWhenReadingResumes(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.takes = { [unowned connection] _ in
            connection.pauseReading()
            return 2
        }
        peer.send("abcdef")
        #expect(meeting.run { consumer.text == "ab" })
        peer.send("gh")
        meeting.ground.settle()
        #expect(consumer.text == "ab")
        consumer.takes = { $0 }
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { consumer.text == "abcdefgh" })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func readsAtMostItsLimitAtATime(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.readLimit = 100 }
        peer.send([UInt8](repeating: 7, count: 1000))
        #expect(meeting.run { consumer.received.count == 1000 })
        #expect(consumer.offers.allSatisfy { $0 <= 100 })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    // MARK: Backpressure

    @Test(arguments: Kind.allCases)
    func queuesWhatTheKernelDoesNotTakeAndTellsProgress(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        peer.isReading = false
        let bytes = meeting.flood
        let total = bytes.count
        meeting.perform { connection.write(bytes) }
        meeting.ground.settle()
        let waiting = connection.queuedBytes
        #expect(waiting > 0 && waiting < total)
        #expect(connection.sentBytes == UInt64(total - waiting))
        var progress: [Int] = []
        consumer.onOutputProgressed = { progress.append(connection.queuedBytes) }
        peer.isReading = true
        #expect(meeting.run { connection.queuedBytes == 0 })
        #expect(progress.last == 0 && progress == progress.sorted(by: >))
        #expect(connection.sentBytes == UInt64(total))
        #expect(meeting.run { peer.received.count == total })
        let isIntact = peer.received == bytes
        #expect(isIntact)
        consumer.onOutputProgressed = {}
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func slowsThePeerWhileReadingIsPaused(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.pauseReading() }
        let bytes = meeting.flood
        let total = bytes.count
        peer.send(bytes)
        meeting.ground.settle()
        #expect(peer.unsentBytes > 0)
        #expect(consumer.offers.isEmpty)
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { consumer.received.count == total })
        #expect(consumer.offers.allSatisfy { $0 <= Loop.receiveCapacity })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func sendsQueuedBytesBeforeTheHalfClose(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        peer.isReading = false
        let bytes = meeting.flood
        meeting.perform {
            connection.write(bytes)
            connection.shutdownOutput()
        }
        meeting.ground.settle()
        #expect(connection.queuedBytes > 0)
        peer.isReading = true
        #expect(meeting.run { peer.sawEnd })
        #expect(peer.received.count == Int(connection.sentBytes))
        #expect(consumer.end == nil)
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func failsTheWritesOfAPeerThatIsGone(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        peer.isReading = false
        let bytes = meeting.flood
        meeting.perform { connection.write(bytes) }
        meeting.ground.settle()
        peer.reset()
        #expect(meeting.run { consumer.end == .failed(.reset) })
        #expect(connection.queuedBytes == 0)
        meeting.finish()
    }

    // MARK: Closing

    @Test(arguments: Kind.allCases)
    func closesAfterEverythingIsSent(_ kind: Kind) throws {
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
    func throwsAwayInputWhileItLingersSoThatNothingSentIsLost(_ kind: Kind) throws {
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
    func throwsAwayUnreadInputOfAShutInputTooWhileItLingers(_ kind: Kind) throws {
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

    @Test func lingersNoLongerThanAsked() throws {
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

    @Test func givesUpAPeerThatTakesNothingWhileItCloses() throws {
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

    @Test func noticesAPeerThatStoppedAnswering() throws {
        let meeting = try LoopMeeting(.simulation)
        meeting.collector.options.userTimeout = .seconds(20)
        let (connection, writer, _) = try meeting.connect()
        let (idle, listener, _) = try meeting.connect()
        let system = try #require(meeting.loop.system as? SimulatedSystem)
        system.stall(connection.descriptor, for: nil)
        system.stall(idle.descriptor, for: nil)
        meeting.perform { connection.write("anybody there?") }
        #expect(meeting.run(atMost: .seconds(21)) { writer.end == .failed(.peerUnresponsive) })
        // Without bytes under way keep-alive notices: 60 s idle and a probe that goes unanswered for 15 s.
        #expect(meeting.run(atMost: .seconds(60)) { listener.end == .failed(.peerUnresponsive) })
        meeting.finish()
    }

    // MARK: Handing over

    @Test(arguments: Kind.allCases)
    func surrendersItsDescriptorWithTheUnreadBytes(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.takes = { [unowned connection] _ in
            connection.pauseReading()
            return 4
        }
        peer.send("HEADrest")
        #expect(meeting.run { consumer.text == "HEAD" })
        peer.send(" and more")
        var surrendered: SurrenderedSocket?
        meeting.perform {
            connection.write("sent before")
            surrendered = connection.surrender()
        }
        let socket = try #require(surrendered)
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
    func doesNotSurrenderWhileBytesWait(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, _, peer) = try meeting.connect()
        peer.isReading = false
        let bytes = meeting.flood
        meeting.perform { connection.write(bytes) }
        meeting.ground.settle()
        meeting.perform { #expect(connection.surrender() == nil) }
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    // MARK: Reused descriptors

    @Test(arguments: Kind.allCases)
    func keepsStaleEventsFromTheNewOwnerOfADescriptor(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let first = try meeting.connect()
        let second = try meeting.connect()
        let waiting = try meeting.host.connect(to: meeting.listener.address)
        var adopted: (SocketConnection, RecordingConsumer)?
        // Whichever is told first ends the other and takes its descriptor number for a newcomer, within one batch of events.
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
        first.consumer.takes = { [unowned two] offered in
            swap(two)
            return offered
        }
        second.consumer.takes = { [unowned one] offered in
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
