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
    func writesOfOneTurnAreOneSend(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, _, peer) = try meeting.connect()
        meeting.perform {
            for piece in ["one ", "two ", "three"] { connection.write(piece) }
            #expect(connection.sentBytes == 0 && connection.writtenBytes == 13)
        }
        #expect(meeting.run { peer.received == Array("one two three".utf8) })
        if let trace = meeting.ground.network?.trace {
            #expect(trace.description.split(separator: "\n").filter { $0.contains("  sent  ") }.count == 1)
        }
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func writeIsFilledInPlace(_ kind: Kind) throws {
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

    /// Below, at and beyond what one turn gathers.
    @Test(arguments: Kind.allCases, [0, 1, 600, (256 << 10) - 13, (256 << 10) - 12, 300_000])
    func headIsSentBeforeBytes(_ kind: Kind, _ count: Int) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, _, peer) = try meeting.connect()
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        meeting.perform {
            connection.write("0")
            let queued = connection.write(LeadingBytes(0xFF04_0302_01, count: 4), bytes.span.bytes)
            // A write that does not fit flushes the earlier bytes.
            #expect(queued == 5 + count || (queued == 4 + count && count > 260_000))
            #expect(connection.queuedBytes == queued)
        }
        #expect(meeting.run { peer.received.count == 5 + count })
        #expect(peer.received == [0x30, 1, 2, 3, 4] + bytes)
        #expect(connection.writtenBytes == UInt64(5 + count))
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases, [0, 4])
    func directAndGatheredWritesKeepTheirOrder(_ kind: Kind, _ head: Int) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, _, peer) = try meeting.connect()
        let large = (0..<40_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let once = Array([1, 2, 3, 4].prefix(head)) + large
        meeting.perform {
            // The first follows no write, the second a large one, and the last a small one.
            for _ in 0..<2 { connection.write(LeadingBytes(0x0403_0201, count: head), large.span.bytes) }
            connection.write("small")
            connection.write(LeadingBytes(0x0403_0201, count: head), large.span.bytes)
        }
        let expected = once + once + Array("small".utf8) + once
        #expect(meeting.run { peer.received.count == expected.count })
        #expect(peer.received == expected)
        #expect(connection.writtenBytes == UInt64(expected.count))
        #expect(connection.sentBytes == connection.writtenBytes)
        meeting.perform { connection.reset() }
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func halfCloseKeepsTheOtherDirectionOpen(_ kind: Kind) throws {
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
    func readingContinuesAfterTheOwnHalfClose(_ kind: Kind) throws {
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
    func resetDiffersFromAnEnd(_ kind: Kind) throws {
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
    func resetFollowsTheBytesBeforeIt(_ kind: Kind) throws {
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
    func bytesBeforeAResetAreReadAfterAFailedWrite(_ kind: Kind) throws {
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
    func resetReachesThePeer(_ kind: Kind) throws {
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
    func resetIsReportedWhileReadingIsPaused(_ kind: Kind) throws {
        let meeting = try LoopMeeting(kind)
        let (connection, consumer, peer) = try meeting.connect()
        meeting.perform { connection.pauseReading() }
        peer.reset()
        #expect(meeting.run { consumer.end == .failed(.reset) })
        meeting.finish()
    }

    @Test(arguments: Kind.allCases)
    func cleanEndWaitsForAPausedReader(_ kind: Kind) throws {
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
}
