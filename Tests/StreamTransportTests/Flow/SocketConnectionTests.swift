import ByteKernels
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("A connection on a loop, simulated and real")
struct SocketConnectionTests {
    typealias Kind = TransportTestbed.Kind

    @Test(arguments: Kind.allCases)
    func connectionEchoesAndEndsCleanly(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        peer.send("hello")
        #expect(harness.run { consumer.text == "hello" })
        harness.perform { connection.write("hello yourself") }
        #expect(harness.run { peer.received.count == 14 })
        #expect(connection.writtenBytes == 14 && connection.sentBytes == 14)
        #expect(connection.localAddress == harness.listener.address)
        #expect(connection.peerAddress == harness.host.system.localAddress(peer.descriptor))
        harness.perform { connection.close(linger: .seconds(1)) }
        #expect(harness.run { peer.sawEnd })
        #expect(consumer.end == nil)
        peer.finish()
        #expect(harness.run { consumer.end == .closed })
        #expect(peer.received == Array("hello yourself".utf8) && peer.failure == nil)
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func writesOfOneTurnAreOneSend(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, _, peer) = try harness.connect()
        harness.perform {
            for piece in ["one ", "two ", "three"] { connection.write(piece) }
            #expect(connection.sentBytes == 0 && connection.writtenBytes == 13)
        }
        #expect(harness.run { peer.received == Array("one two three".utf8) })
        if let trace = harness.testbed.network?.trace {
            #expect(trace.description.split(separator: "\n").filter { $0.contains("  sent  ") }.count == 1)
        }
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func writeIsFilledInPlace(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, _, peer) = try harness.connect()
        harness.perform {
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
        #expect(harness.run { peer.received == Array("abcd".utf8) })
        #expect(connection.writtenBytes == 4)
        harness.perform { connection.reset() }
        harness.finish()
    }

    /// Below, at and beyond what one turn gathers.
    @Test(arguments: Kind.allCases, [0, 1, 600, (256 << 10) - 13, (256 << 10) - 12, 300_000])
    func headIsSentBeforeBytes(_ kind: Kind, _ count: Int) throws {
        let harness = try LoopHarness(kind)
        let (connection, _, peer) = try harness.connect()
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        harness.perform {
            connection.write("0")
            let queued = connection.write(LeadingBytes(0xFF04_0302_01, count: 4), bytes.span.bytes)
            // A write that does not fit flushes the earlier bytes.
            #expect(queued == 5 + count || (queued == 4 + count && count > 260_000))
            #expect(connection.queuedBytes == queued)
        }
        #expect(harness.run { peer.received.count == 5 + count })
        #expect(peer.received == [0x30, 1, 2, 3, 4] + bytes)
        #expect(connection.writtenBytes == UInt64(5 + count))
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases, [0, 4])
    func directAndGatheredWritesKeepTheirOrder(_ kind: Kind, _ head: Int) throws {
        let harness = try LoopHarness(kind)
        let (connection, _, peer) = try harness.connect()
        let large = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let once = Array([1, 2, 3, 4].prefix(head)) + large
        harness.perform {
            // The first follows no write, the second a large one, and the last a small one.
            for _ in 0..<2 { connection.write(LeadingBytes(0x0403_0201, count: head), large.span.bytes) }
            connection.write("small")
            connection.write(LeadingBytes(0x0403_0201, count: head), large.span.bytes)
        }
        let expected = once + once + Array("small".utf8) + once
        #expect(harness.run { peer.received.count == expected.count })
        #expect(peer.received == expected)
        #expect(connection.writtenBytes == UInt64(expected.count))
        #expect(connection.sentBytes == connection.writtenBytes)
        harness.perform { connection.reset() }
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func halfCloseKeepsTheOtherDirectionOpen(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        peer.send("question")
        peer.finish()
        #expect(harness.run { consumer.events == [.inputClosed] })
        #expect(consumer.text == "question")
        harness.perform { connection.write("answer") }
        #expect(harness.run { peer.received == Array("answer".utf8) })
        #expect(!peer.sawEnd)
        harness.perform { connection.shutdownOutput() }
        #expect(harness.run { peer.sawEnd })
        #expect(consumer.end == nil)
        harness.perform { connection.close(linger: .seconds(1)) }
        #expect(harness.run { consumer.end == .closed })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func readingContinuesAfterTheOwnHalfClose(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform {
            connection.write("all I have to say")
            connection.shutdownOutput()
            connection.write("ignored")
        }
        #expect(harness.run { peer.sawEnd })
        #expect(peer.received == Array("all I have to say".utf8))
        peer.send("and more")
        #expect(harness.run { consumer.text == "and more" })
        peer.finish()
        #expect(harness.run { consumer.events == [.inputClosed] })
        harness.perform { connection.close(linger: .zero) }
        #expect(harness.run { consumer.end == .closed })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func resetDiffersFromAnEnd(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (_, ended, clean) = try harness.connect()
        let (_, failed, unclean) = try harness.connect()
        clean.close()
        unclean.reset()
        #expect(harness.run { ended.events == [.inputClosed] && failed.events == [.ended(.failed(.reset))] })
        harness.perform { for connection in harness.collector.connections { connection.close(linger: .zero) } }
        #expect(harness.run { ended.end == .closed })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func resetFollowsTheBytesBeforeIt(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (_, consumer, peer) = try harness.connect()
        peer.send("last words")
        harness.testbed.settle(rounds: 0)
        peer.reset()
        #expect(harness.run { consumer.end != nil })
        #expect(consumer.text == "last words")
        #expect(consumer.events == [.ended(.failed(.reset))])
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesBeforeAResetAreReadAfterAFailedWrite(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform { connection.pauseReading() }
        peer.send("goodbye")
        harness.testbed.settle()
        harness.perform {
            connection.resumeReading()
            peer.reset()
        }
        harness.perform { connection.write("too late") }
        #expect(harness.run { consumer.end != nil })
        #expect(consumer.text == "goodbye")
        #expect(consumer.events.last == .ended(.failed(.reset)))
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func resetReachesThePeer(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform {
            connection.write("never sent")
            connection.reset()
            connection.write("ignored")
        }
        #expect(harness.run { peer.failure == .reset })
        #expect(peer.received.isEmpty && !peer.sawEnd)
        #expect(consumer.events == [.ended(.abandoned)])
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func resetIsReportedWhileReadingIsPaused(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform { connection.pauseReading() }
        peer.reset()
        #expect(harness.run { consumer.end == .failed(.reset) })
        harness.finish()
    }

    @Test(arguments: Kind.allCases)
    func cleanEndWaitsForAPausedReader(_ kind: Kind) throws {
        let harness = try LoopHarness(kind)
        let (connection, consumer, peer) = try harness.connect()
        harness.perform {
            connection.pauseReading()
            connection.shutdownOutput()
        }
        peer.send("read me later")
        peer.finish()
        harness.testbed.settle()
        #expect(consumer.received.isEmpty && consumer.events.isEmpty)
        harness.perform { connection.resumeReading() }
        #expect(harness.run { consumer.events == [.inputClosed] })
        #expect(consumer.text == "read me later")
        harness.perform { connection.close(linger: .zero) }
        #expect(harness.run { consumer.end == .closed })
        harness.finish()
    }
}
