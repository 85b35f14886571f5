import StreamTransport
import TestSupport
import Testing

@Suite("Backpressure in both directions, simulated and real")
struct ConnectionBackpressureTests {
    typealias Kind = TransportTestbed.Kind

    @Test(arguments: Kind.allCases)
    func unconsumedBytesPrecedeNewOnes(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        consumer.acceptedCount = { offered in offered < 6 ? 0 : offered }
        peer.send("abc")
        #expect(harness.run { consumer.offers == [3] })
        harness.testbed.settle()
        // Not offered again while nothing new came.
        #expect(consumer.offers == [3])
        peer.send("def")
        #expect(harness.run { consumer.text == "abcdef" })
        #expect(consumer.offers == [3, 6])
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func unconsumedBytesAreOfferedWhenReadingResumes(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        consumer.acceptedCount = { [unowned connection] _ in
            connection.pauseReading()
            return 2
        }
        peer.send("abcdef")
        #expect(harness.run { consumer.text == "ab" })
        peer.send("gh")
        harness.testbed.settle()
        #expect(consumer.text == "ab")
        consumer.acceptedCount = { $0 }
        harness.perform { connection.resumeReading() }
        #expect(harness.run { consumer.text == "abcdefgh" })
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesLeftByAConsumerThatRefusesInputAreDropped(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        consumer.acceptedCount = { [unowned connection] _ in
            connection.shutdownInput()
            return 0
        }
        peer.send("abc")
        #expect(harness.run { consumer.offers == [3] })
        harness.perform {
            connection.pauseReading()
            connection.resumeReading()
        }
        harness.testbed.settle()
        #expect(consumer.offers == [3])
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func connectionReadsAtMostItsLimitAtATime(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform { connection.readLimit = 100 }
        peer.send([UInt8](repeating: 7, count: 1000))
        #expect(harness.run { consumer.received.count == 1000 })
        #expect(consumer.offers.allSatisfy { $0 <= 100 })
        harness.perform { connection.reset() }
        harness.finish()
    }

    /// A call sends a limited number of pieces: if each small write were a piece, thousands would need hundreds of calls.
    @Test(arguments: Kind.allCases)
    func smallWritesThatWaitLeaveTogether(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        peer.isReading = false
        let (bytes, small) = (harness.flood, 10_000)
        harness.perform { connection.write(bytes) }
        harness.testbed.settle()
        harness.perform { for _ in 0..<small { connection.write([7]) } }
        var calls = 0
        consumer.onOutputProgressed = { calls += connection.queuedBytes <= small ? 1 : 0 }
        peer.isReading = true
        #expect(harness.run { peer.received.count == bytes.count + small })
        #expect(calls < 50)
        consumer.onOutputProgressed = {}
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesThatTheKernelRefusesAreQueuedAndReported(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        peer.isReading = false
        let bytes = harness.flood
        let total = bytes.count
        harness.perform { connection.write(bytes) }
        harness.testbed.settle()
        let waiting = connection.queuedBytes
        #expect(waiting > 0 && waiting < total)
        #expect(connection.sentBytes == UInt64(total - waiting))
        var progress: [Int] = []
        consumer.onOutputProgressed = { progress.append(connection.queuedBytes) }
        peer.isReading = true
        #expect(harness.run { connection.queuedBytes == 0 })
        #expect(progress.last == 0 && progress == progress.sorted(by: >))
        #expect(connection.sentBytes == UInt64(total))
        #expect(harness.run { peer.received.count == total })
        let isIntact = peer.received == bytes
        #expect(isIntact)
        consumer.onOutputProgressed = {}
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func pausedReadingSlowsThePeer(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform { connection.pauseReading() }
        let bytes = harness.flood
        let total = bytes.count
        peer.send(bytes)
        harness.testbed.settle()
        #expect(peer.unsentBytes > 0)
        #expect(consumer.offers.isEmpty)
        harness.perform { connection.resumeReading() }
        #expect(harness.run { consumer.received.count == total })
        #expect(consumer.offers.allSatisfy { $0 <= Loop.receiveCapacity })
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func queuedBytesAreSentBeforeTheHalfClose(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        peer.isReading = false
        let bytes = harness.flood
        harness.perform {
            connection.write(bytes)
            connection.shutdownOutput()
        }
        harness.testbed.settle()
        #expect(connection.queuedBytes > 0)
        peer.isReading = true
        #expect(harness.run { peer.sawEnd })
        #expect(peer.received.count == Int(connection.sentBytes))
        #expect(consumer.end == nil)
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func writesToAClosedPeerFail(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        peer.isReading = false
        let bytes = harness.flood
        harness.perform { connection.write(bytes) }
        harness.testbed.settle()
        peer.reset()
        #expect(harness.run { consumer.end == .failed(.reset) })
        #expect(connection.queuedBytes == 0)
        harness.finish()
    }

    /// A consumer that paused a source because of queued output is notified when the queue shrinks.
    @Test(arguments: Kind.allCases)
    func queuedBytesSentInTheSameTurnAreReported(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        let count = 300_000
        harness.perform {
            connection.write([UInt8](repeating: 1, count: count))
            #expect(connection.queuedBytes == count)
        }
        #expect(harness.run { connection.queuedBytes == 0 && peer.received.count == count })
        #expect(consumer.events == [.outputProgressed])
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesGatheredInATurnCountAsQueued(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform {
            connection.write("gathered")
            #expect(connection.queuedBytes == 8)
        }
        #expect(harness.run { peer.received.count == 8 })
        #expect(consumer.events.isEmpty)
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases, [false, true])
    func writeCompletionFollowsItsLastByte(_ kind: Kind, _ atOnce: Bool) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, _) = try harness.connect()
        var sent: UInt64 = 0
        consumer.onOutputProgressed = { sent = connection.sentBytes }
        let bytes = Array("tell me".utf8)
        harness.perform {
            connection.awaitProgress()
            if atOnce {
                connection.writeThrough(bytes.span.bytes)
            } else {
                connection.write(bytes)
            }
            #expect(consumer.events.isEmpty)
        }
        #expect(harness.run { consumer.events == [.outputProgressed] })
        #expect(sent == 7)
        harness.perform { connection.write("nobody asked") }
        harness.testbed.settle()
        #expect(sent == 7)
        consumer.onOutputProgressed = {}
        harness.perform { connection.reset() }
        harness.finish()
    }
}
