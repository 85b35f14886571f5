import ControlPlane
import Testing

@Suite("Connection slots of the control plane")
struct ConnectionSlotsTests {
    @Test func longestIdleConnectionIsClosed() {
        var places = ConnectionSlots(limit: 3, clientLimit: 10)
        for identifier: UInt64 in 1...3 { #expect(places.admit(identifier, from: "a") == .admitted(closing: nil)) }
        places.requestFinished(1)
        #expect(places.admit(4, from: "b") == .admitted(closing: 2))
        #expect(places.admit(5, from: "b") == .admitted(closing: 3))
        #expect(places.admit(6, from: "b") == .admitted(closing: 1))
        #expect(places.count == 3)
    }

    @Test func runningRequestKeepsItsSlot() {
        var places = ConnectionSlots(limit: 2, clientLimit: 10)
        _ = places.admit(1, from: "a")
        places.requestStarted(1)
        _ = places.admit(2, from: "a")
        #expect(places.admit(3, from: "b") == .admitted(closing: 2))
        places.requestFinished(1)
        #expect(places.admit(4, from: "b") == .admitted(closing: 3))
        #expect(places.admit(5, from: "b") == .admitted(closing: 1))
    }

    /// Probes are accepted although running requests hold all slots.
    @Test func extraSlotsAcceptProbesWhenAllAreBusy() {
        var places = ConnectionSlots(limit: 2, clientLimit: 100)
        for identifier: UInt64 in 1...2 {
            _ = places.admit(identifier, from: nil)
            places.requestStarted(identifier)
        }
        let extra = UInt64(ConnectionSlots.probeLimit)
        for identifier in 10..<(10 + extra) {
            #expect(places.admit(identifier, from: nil) == .admittedForProbes(closing: nil))
        }
        #expect(places.admit(100, from: nil) == .admittedForProbes(closing: 10))
        places.remove(1)
        #expect(places.count == 1 + Int(extra))
        places.remove(100)
    }

    @Test func clientAboveItsLimitLosesItsOwnConnection() {
        var places = ConnectionSlots(limit: 10, clientLimit: 2)
        _ = places.admit(1, from: "a")
        _ = places.admit(2, from: "b")
        _ = places.admit(3, from: "b")
        #expect(places.admit(4, from: "b") == .admitted(closing: 2))
        places.requestStarted(3)
        places.requestStarted(4)
        #expect(places.admit(5, from: "b") == .refused)
        #expect(places.admit(6, from: "a") == .admitted(closing: nil))
        places.remove(3)
        #expect(places.admit(7, from: "b") == .admitted(closing: nil))
    }

    @Test func unixSocketsAreNotCountedByClient() {
        var places = ConnectionSlots(limit: 100, clientLimit: 1)
        for identifier: UInt64 in 1...100 { #expect(places.admit(identifier, from: nil) == .admitted(closing: nil)) }
    }

    @Test func slotReleasedTwiceIsCountedOnce() {
        var places = ConnectionSlots(limit: 4, clientLimit: 2)
        _ = places.admit(1, from: "a")
        _ = places.admit(2, from: "a")
        places.remove(1)
        places.remove(1)
        _ = places.admit(3, from: "a")
        #expect(places.admit(4, from: "a") == .admitted(closing: 2))
    }
}
