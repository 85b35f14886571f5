import GatewayCore
import StreamTransport
import Testing

@Suite("Slots for TLS handshakes")
struct HandshakeSlotsTests {
    private func instant(_ seconds: Int64) -> MonotonicInstant {
        MonotonicInstant(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func concurrentHandshakesAreLimitedAndOthersStartInOrder() {
        var slots = HandshakeSlots()
        #expect(slots.arrived(1, limit: 2, at: self.instant(0)) == true)
        #expect(slots.arrived(2, limit: 2, at: self.instant(0)) == true)
        #expect(slots.arrived(3, limit: 2, at: self.instant(0)) == false)
        #expect(slots.arrived(4, limit: 2, at: self.instant(0)) == false)
        #expect(slots.takeNext(limit: 2, at: self.instant(0)) == nil)
        slots.removed(2)
        #expect(slots.takeNext(limit: 2, at: self.instant(1)) == 3)
        #expect(slots.takeNext(limit: 2, at: self.instant(1)) == nil)
        slots.removed(1)
        slots.removed(3)
        #expect(slots.takeNext(limit: 2, at: self.instant(1)) == 4)
        slots.removed(4)
        #expect(slots.isEmpty)
    }

    @Test func newConnectionQueuesAfterWaitingOnes() {
        var slots = HandshakeSlots()
        _ = slots.arrived(1, limit: 1, at: self.instant(0))
        _ = slots.arrived(2, limit: 1, at: self.instant(0))
        slots.removed(1)
        #expect(slots.arrived(3, limit: 1, at: self.instant(0)) == false)
        #expect(slots.takeNext(limit: 1, at: self.instant(0)) == 2)
    }

    @Test func queuedConnectionsThatEndedAreSkipped() {
        var slots = HandshakeSlots()
        for identifier: UInt64 in 1...4 { _ = slots.arrived(identifier, limit: 1, at: self.instant(0)) }
        slots.removed(3)
        slots.removed(2)
        slots.removed(1)
        #expect(slots.takeNext(limit: 1, at: self.instant(0)) == 4)
    }

    @Test func aSlowHandshakeHasADeadlineOnlyWhileOthersAreQueued() {
        var slots = HandshakeSlots()
        _ = slots.arrived(1, limit: 1, at: self.instant(0))
        #expect(slots.nextDeadline == nil)
        #expect(slots.overdue(at: self.instant(100)) == nil)
        _ = slots.arrived(2, limit: 1, at: self.instant(1))
        #expect(slots.nextDeadline == self.instant(2))
        #expect(slots.overdue(at: self.instant(1)) == nil)
        #expect(slots.overdue(at: self.instant(2)) == 1)
        slots.removed(1)
        #expect(slots.takeNext(limit: 1, at: self.instant(2)) == 2)
        #expect(slots.nextDeadline == nil)
    }
}
