import GatewayCore
import SessionTasks
import StreamTransport
import Testing

@Suite("The time that a relay adds")
struct RelayLatencyTests {
    private final class End {}

    private static func at(_ microseconds: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: 1_000_000_000 + microseconds * 1000)
    }

    @Test func bytesThatLeaveAtOnceHaveNoLatency() {
        let latency = RelayLatency()
        latency.forwarded(Self.at(0), at: Self.at(7))
        #expect(latency.distribution.count == 1)
        #expect(latency.distribution.sum == 7)
    }

    @Test func queuedBytesAreMeasuredWhenTheLastOneLeaves() {
        let latency = RelayLatency()
        let (end, other) = (End(), End())
        latency.startWaiting(end, Self.at(0), until: 1000, at: Self.at(1))
        #expect(latency.progressed(end, sent: 999, at: Self.at(10)))
        // Bytes of another connection do not count for this one.
        #expect(!latency.progressed(other, sent: .max, at: Self.at(10)))
        #expect(latency.distribution.count == 0)
        #expect(!latency.progressed(end, sent: 1000, at: Self.at(50)))
        #expect(latency.distribution.sum == 50)
    }

    @Test func latencyOfAPeerThatNeverReadsIsReportedAndBounded() {
        let latency = RelayLatency()
        let end = End()
        for number in 0..<RelayLatency.pendingLimit {
            latency.startWaiting(end, Self.at(Int64(number)), until: 1000, at: Self.at(Int64(number)))
        }
        #expect(latency.distribution.count == 0)
        latency.startWaiting(end, Self.at(100), until: 1000, at: Self.at(100))
        #expect(latency.distribution.count == 1)
        #expect(latency.distribution.sum == 100)
    }

    @Test func bytesThatNeverLeftEndWithTheirTunnel() {
        let latency = RelayLatency()
        let end = End()
        latency.startWaiting(end, Self.at(0), until: 1, at: Self.at(0))
        latency.forget(end)
        #expect(!latency.progressed(end, sent: .max, at: Self.at(1)))
        #expect(latency.distribution.count == 0)
    }
}
