import StreamTransport
import TestSupport
import Testing

@Suite("Backpressure in both directions, simulated and real")
struct ConnectionBackpressureTests {
    typealias Kind = TransportTestbed.Kind

    @Test(arguments: Kind.allCases)
    func unconsumedBytesPrecedeNewOnes(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.acceptedCount = { offered in offered < 6 ? 0 : offered }
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
    func unconsumedBytesAreOfferedWhenReadingResumes(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.acceptedCount = { [unowned connection] _ in
            connection.pauseReading()
            return 2
        }
        peer.send("abcdef")
        #expect(meeting.run { consumer.text == "ab" })
        peer.send("gh")
        meeting.ground.settle()
        #expect(consumer.text == "ab")
        consumer.acceptedCount = { $0 }
        meeting.perform { connection.resumeReading() }
        #expect(meeting.run { consumer.text == "abcdefgh" })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesLeftByAConsumerThatRefusesInputAreDropped(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        consumer.acceptedCount = { [unowned connection] _ in
            connection.shutdownInput()
            return 0
        }
        peer.send("abc")
        #expect(meeting.run { consumer.offers == [3] })
        meeting.perform {
            connection.pauseReading()
            connection.resumeReading()
        }
        meeting.ground.settle()
        #expect(consumer.offers == [3])
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func connectionReadsAtMostItsLimitAtATime(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.readLimit = 100 }
        peer.send([UInt8](repeating: 7, count: 1000))
        #expect(meeting.run { consumer.received.count == 1000 })
        #expect(consumer.offers.allSatisfy { $0 <= 100 })
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    /// A call sends a limited number of pieces: if each small write were a piece, thousands would need hundreds of calls.
    @Test(arguments: Kind.allCases)
    func smallWritesThatWaitLeaveTogether(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        peer.isReading = false
        let (bytes, small) = (meeting.flood, 10_000)
        meeting.perform { connection.write(bytes) }
        meeting.ground.settle()
        meeting.perform { for _ in 0..<small { connection.write([7]) } }
        var calls = 0
        consumer.onOutputProgressed = { calls += connection.queuedBytes <= small ? 1 : 0 }
        peer.isReading = true
        #expect(meeting.run { peer.received.count == bytes.count + small })
        #expect(calls < 50)
        consumer.onOutputProgressed = {}
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesThatTheKernelRefusesAreQueuedAndReported(_ kind: Kind) throws {
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
    func pausedReadingSlowsThePeer(_ kind: Kind) throws {
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
    func queuedBytesAreSentBeforeTheHalfClose(_ kind: Kind) throws {
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
    func writesToAClosedPeerFail(_ kind: Kind) throws {
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

    /// A consumer that paused a source because of queued output is notified when the queue shrinks.
    @Test(arguments: Kind.allCases)
    func queuedBytesSentInTheSameTurnAreReported(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        let count = 300_000
        meeting.perform {
            connection.write([UInt8](repeating: 1, count: count))
            #expect(connection.queuedBytes == count)
        }
        #expect(meeting.run { connection.queuedBytes == 0 && peer.received.count == count })
        #expect(consumer.events == [.outputProgressed])
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesGatheredInATurnCountAsQueued(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform {
            connection.write("gathered")
            #expect(connection.queuedBytes == 8)
        }
        #expect(meeting.run { peer.received.count == 8 })
        #expect(consumer.events.isEmpty)
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases, [false, true])
    func writeCompletionFollowsItsLastByte(_ kind: Kind, _ atOnce: Bool) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, _) = try meeting.connect()
        var sent: UInt64 = 0
        consumer.onOutputProgressed = { sent = connection.sentBytes }
        let bytes = Array("tell me".utf8)
        meeting.perform {
            connection.awaitProgress()
            if atOnce {
                connection.writeThrough(bytes.span.bytes)
            } else {
                connection.write(bytes)
            }
            #expect(consumer.events.isEmpty)
        }
        #expect(meeting.run { consumer.events == [.outputProgressed] })
        #expect(sent == 7)
        meeting.perform { connection.write("nobody asked") }
        meeting.ground.settle()
        #expect(sent == 7)
        consumer.onOutputProgressed = {}
        meeting.perform { connection.reset() }
        meeting.finish()
    }
}
