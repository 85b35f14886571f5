import Glibc
import SessionTasks
import StreamTransport
import TestSupport
import Testing

@Suite("Tapped byte streams, simulated and real")
struct TappedStreamTests {
    typealias Kind = TransportTestbed.Kind

    /// The pieces that a tap received, and the number of skipped ones.
    private final class TapRecord {
        var room = 0
        private(set) var bytes: [UInt8] = []
        private(set) var skipped = 0

        func tap() -> TaskTap {
            TaskTap(
                pieceLimit: 1 << 20, sampling: 1, hasCapacity: { self.room > 0 },
                take: {
                    self.room -= 1
                    self.bytes += $0.bytes
                }, skipped: { self.skipped += $0 })
        }
    }

    /// A relayed task, the connection its bytes may go to unseen, and the peers of both.
    private struct Relay {
        let harness: TaskHarness
        let task: StreamTask
        let peer: ScriptedPeer
        let consumer = RecordingConsumer()
        let far: ScriptedPeer

        init(_ kind: Kind) throws {
            // A relaying program must ignore SIGPIPE: otherwise a peer that disconnects ends the process.
            signal(SIGPIPE, SIG_IGN)
            try self.init(in: TaskHarness(kind))
        }

        init(in harness: TaskHarness) throws {
            self.harness = harness
            (self.task, self.peer) = try self.harness.accepted()
            let (target, far) = try self.harness.acceptedTransport()
            self.far = far
            self.consumer.spliceTarget = target
            let (task, consumer) = (self.task, self.consumer)
            self.harness.perform {
                task.attach(consumer)
                task.resumeReading()
            }
        }

        func reset() {
            let (task, target) = (self.task, self.consumer.spliceTarget)
            self.harness.perform {
                task.reset()
                target?.reset()
            }
        }

        func finish() {
            self.reset()
            self.harness.finish()
        }
    }

    /// A tap that is not read costs the stream nothing: after a long read, bytes are spliced again.
    @Test(arguments: Kind.allCases)
    func fullTapMissesBytes(_ kind: Kind) throws {
        let relay = try Relay(kind)
        let sight = TapRecord()
        // So much waits when reading resumes that the first read is a long one.
        relay.harness.perform {
            relay.task.add(sight.tap())
            relay.task.pauseReading()
        }
        let bytes = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        relay.peer.send(bytes)
        relay.harness.settle()
        relay.harness.perform { relay.task.resumeReading() }
        let consumer = relay.consumer
        #expect(relay.harness.run { consumer.received.count + consumer.splicedCount == bytes.count })
        #expect(consumer.splicedCount > 0 && sight.skipped > 0 && sight.bytes.isEmpty)
        #expect(relay.harness.run { relay.far.received.count == consumer.splicedCount })
        #expect(relay.task.record.bytesReceived == UInt64(bytes.count))
        relay.finish()
    }

    @Test(arguments: Kind.allCases)
    func tapWithRoomCopiesAllTraffic(_ kind: Kind) throws {
        let relay = try Relay(kind)
        let (sight, full) = (TapRecord(), TapRecord())
        sight.room = .max
        relay.harness.perform {
            relay.task.add(full.tap())
            relay.task.add(sight.tap())
        }
        let bytes = (0..<500_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        relay.peer.send(bytes)
        let consumer = relay.consumer
        #expect(relay.harness.run { consumer.received.count == bytes.count })
        #expect(consumer.splicedCount == 0 && sight.bytes == bytes && sight.skipped == 0 && full.skipped > 0)
        relay.finish()
    }

    @Test(arguments: Kind.allCases)
    func eachTapSeesItsOwnTaskUntilItIsTakenAway(_ kind: Kind) throws {
        let first = try Relay(kind)
        let second = try Relay(in: first.harness)
        let (one, two, other) = (TapRecord(), TapRecord(), TapRecord())
        for sight in [one, two, other] { sight.room = .max }
        let leaving = two.tap()
        first.harness.perform {
            first.task.add(one.tap())
            first.task.add(leaving)
        }
        second.harness.perform { second.task.add(other.tap()) }
        first.peer.send("here")
        second.peer.send("there")
        #expect(first.harness.run { two.bytes == Array("here".utf8) })
        #expect(second.harness.run { other.bytes == Array("there".utf8) })
        first.harness.perform { first.task.remove(leaving) }
        first.peer.send(" again")
        #expect(first.harness.run { one.bytes == Array("here again".utf8) })
        #expect(two.bytes == Array("here".utf8) && other.bytes == Array("there".utf8))
        second.reset()
        first.finish()
    }
}
