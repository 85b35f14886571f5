import GatewayCore
import StreamTransport
import Testing

@Suite("The line of TLS handshakes")
struct HandshakeQueueSettingsTests {
    private func instant(_ seconds: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func limitsThoseAtOnceAndKeepsTheOrderOfTheOthers() {
        var line = HandshakeQueueSettings()
        #expect(line.arrived(1, limit: 2, at: self.instant(0)) == true)
        #expect(line.arrived(2, limit: 2, at: self.instant(0)) == true)
        #expect(line.arrived(3, limit: 2, at: self.instant(0)) == false)
        #expect(line.arrived(4, limit: 2, at: self.instant(0)) == false)
        #expect(line.takeNext(limit: 2, at: self.instant(0)) == nil)
        line.removed(2)
        #expect(line.takeNext(limit: 2, at: self.instant(1)) == 3)
        #expect(line.takeNext(limit: 2, at: self.instant(1)) == nil)
        line.removed(1)
        line.removed(3)
        #expect(line.takeNext(limit: 2, at: self.instant(1)) == 4)
        line.removed(4)
        #expect(line.isEmpty)
    }

    @Test func nobodyOvertakesThoseWhoWait() {
        var line = HandshakeQueueSettings()
        _ = line.arrived(1, limit: 1, at: self.instant(0))
        _ = line.arrived(2, limit: 1, at: self.instant(0))
        line.removed(1)
        #expect(line.arrived(3, limit: 1, at: self.instant(0)) == false)
        #expect(line.takeNext(limit: 1, at: self.instant(0)) == 2)
    }

    @Test func whoGaveUpWaitingIsPassedOver() {
        var line = HandshakeQueueSettings()
        for identifier: UInt64 in 1...4 { _ = line.arrived(identifier, limit: 1, at: self.instant(0)) }
        line.removed(3)
        line.removed(2)
        line.removed(1)
        #expect(line.takeNext(limit: 1, at: self.instant(0)) == 4)
    }

    @Test func aSlowHandshakeHasAllItsTimeUntilSomeoneWaits() {
        var line = HandshakeQueueSettings()
        _ = line.arrived(1, limit: 1, at: self.instant(0))
        #expect(line.nextDeadline == nil)
        #expect(line.overdue(at: self.instant(100)) == nil)
        _ = line.arrived(2, limit: 1, at: self.instant(1))
        #expect(line.nextDeadline == self.instant(2))
        #expect(line.overdue(at: self.instant(1)) == nil)
        #expect(line.overdue(at: self.instant(2)) == 1)
        line.removed(1)
        #expect(line.takeNext(limit: 1, at: self.instant(2)) == 2)
        #expect(line.nextDeadline == nil)
    }
}
