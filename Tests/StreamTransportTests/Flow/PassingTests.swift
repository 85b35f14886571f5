import Glibc
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Splicing between sockets, simulated and real")
struct PassingTests {
    typealias Kind = TransportTestbed.Kind

    /// Bytes come on the first connection, and go to the second: offered ones by the consumer, others by themselves.
    private struct Relay {
        let harness: LoopHarness
        let source: (connection: SocketConnection, consumer: RecordingConsumer, peer: ScriptedPeer)
        let target: (connection: SocketConnection, consumer: RecordingConsumer, peer: ScriptedPeer)

        init(_ kind: Kind, faults: FaultPlan = .calm, seed: UInt64 = 1) throws {
            // A relaying program must ignore SIGPIPE: otherwise a peer that disconnects ends the process.
            signal(SIGPIPE, SIG_IGN)
            self.harness = try LoopHarness(kind, seed: seed, faults: faults)
            self.source = try self.harness.connect()
            self.target = try self.harness.connect()
            let (from, to) = (self.source, self.target)
            from.consumer.spliceTarget = to.connection
            from.consumer.acceptedCount = { $0 }
            from.consumer.onBytes = { [unowned connection = to.connection] bytes in connection.write(bytes) }
            from.consumer.onInputClosed = { [unowned connection = to.connection] in connection.shutdownOutput() }
        }

        func finish() {
            self.source.consumer.spliceTarget = nil
            let (from, to) = (self.source.connection, self.target.connection)
            self.harness.perform {
                from.reset()
                to.reset()
            }
            self.harness.finish()
        }
    }

    @Test(arguments: Kind.allCases)
    func splicedBytesArriveInOrderBeforeTheEnd(_ kind: Kind) throws {
        let relay = try Relay(kind)
        let bytes = relay.harness.flood
        relay.source.peer.send(bytes)
        relay.source.peer.finish()
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.target.peer.sawEnd })
        let isIntact = relay.target.peer.received == bytes
        #expect(isIntact)
        #expect(relay.source.consumer.splicedCount > bytes.count / 4)
        #expect(relay.source.consumer.splicedCount + relay.source.consumer.received.count == bytes.count)
        #expect(relay.target.connection.writtenBytes == UInt64(bytes.count))
        #expect(relay.target.connection.sentBytes == UInt64(bytes.count))
        relay.finish()
    }

    @Test(arguments: Kind.allCases)
    func bytesThatTheTargetRefusesAreQueued(_ kind: Kind) throws {
        let relay = try Relay(kind)
        relay.target.peer.isReading = false
        let bytes = relay.harness.flood
        relay.source.peer.send(bytes)
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.target.connection.queuedBytes > 0 })
        relay.harness.perform { relay.source.connection.pauseReading() }
        relay.target.peer.isReading = true
        relay.harness.perform { relay.source.connection.resumeReading() }
        relay.source.peer.finish()
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.target.peer.sawEnd })
        let isIntact = relay.target.peer.received == bytes
        #expect(isIntact)
        relay.finish()
    }

    @Test(arguments: Kind.allCases)
    func passedBytesAreVisibleAgainToATap(_ kind: Kind) throws {
        let relay = try Relay(kind)
        let bytes = relay.harness.flood
        relay.source.peer.send(bytes)
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.source.consumer.splicedCount > 0 })
        relay.harness.perform { relay.source.consumer.spliceTarget = nil }
        let (passed, seen) = (relay.source.consumer.splicedCount, relay.source.consumer.received.count)
        relay.source.peer.finish()
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.target.peer.sawEnd })
        #expect(relay.source.consumer.splicedCount == passed)
        #expect(relay.source.consumer.received.count == bytes.count - passed && seen < bytes.count - passed)
        let isIntact = relay.target.peer.received == bytes
        #expect(isIntact)
        relay.finish()
    }

    @Test(arguments: Kind.allCases)
    func closedTargetEndsWhileTheSourceContinues(_ kind: Kind) throws {
        let relay = try Relay(kind)
        let bytes = relay.harness.flood
        relay.source.peer.send(bytes)
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.source.consumer.splicedCount > 0 })
        relay.target.peer.reset()
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.target.consumer.end == .failed(.reset) })
        #expect(relay.source.consumer.end == nil)
        relay.source.peer.finish()
        #expect(relay.harness.run(atMost: .seconds(60)) { relay.source.consumer.events.contains(.inputClosed) })
        relay.finish()
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func shortReadsAndWritesLoseNoBytes(_ seed: UInt64) throws {
        var faults = FaultPlan.rough
        (faults.reset, faults.stall, faults.exhaustion) = (0, 0, 0)
        (faults.refusedConnect, faults.hangingConnect, faults.unreachableConnect) = (0, 0, 0)
        let relay = try Relay(.simulation, faults: faults, seed: seed)
        let bytes = Array(relay.harness.flood.prefix(40_000))
        relay.source.peer.send(bytes)
        relay.source.peer.finish()
        #expect(relay.harness.run(atMost: .seconds(600)) { relay.target.peer.sawEnd })
        let isIntact = relay.target.peer.received == bytes
        #expect(isIntact)
        relay.finish()
    }
}
