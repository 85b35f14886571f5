import ControlPlane
import Testing

@Suite("Places for connections to the control plane")
struct ConnectionPlacesTests {
    @Test func theOneThatHasWaitedLongestGivesWay() {
        var places = ConnectionSlots(limit: 3, clientLimit: 10)
        for identifier: UInt64 in 1...3 { #expect(places.arrived(identifier, from: "a") == .taken(closing: nil)) }
        places.answered(1)
        #expect(places.arrived(4, from: "b") == .taken(closing: 2))
        #expect(places.arrived(5, from: "b") == .taken(closing: 3))
        #expect(places.arrived(6, from: "b") == .taken(closing: 1))
        #expect(places.count == 3)
    }

    @Test func aRequestThatIsBeingCarriedOutKeepsItsPlace() {
        var places = ConnectionSlots(limit: 2, clientLimit: 10)
        _ = places.arrived(1, from: "a")
        places.began(1)
        _ = places.arrived(2, from: "a")
        #expect(places.arrived(3, from: "b") == .taken(closing: 2))
        places.answered(1)
        #expect(places.arrived(4, from: "b") == .taken(closing: 3))
        #expect(places.arrived(5, from: "b") == .taken(closing: 1))
    }

    /// Whoever holds all places by requests still cannot keep a probe out.
    @Test func aFewMoreAreTakenForProbesWhereAllAreBusy() {
        var places = ConnectionSlots(limit: 2, clientLimit: 100)
        for identifier: UInt64 in 1...2 {
            _ = places.arrived(identifier, from: nil)
            places.began(identifier)
        }
        let extra = UInt64(ConnectionSlots.probeLimit)
        for identifier in 10..<(10 + extra) {
            #expect(places.arrived(identifier, from: nil) == .takenForProbes(closing: nil))
        }
        #expect(places.arrived(100, from: nil) == .takenForProbes(closing: 10))
        places.left(1)
        #expect(places.count == 1 + Int(extra))
        places.left(100)
    }

    @Test func aClientAboveItsLimitGivesWayToItself() {
        var places = ConnectionSlots(limit: 10, clientLimit: 2)
        _ = places.arrived(1, from: "a")
        _ = places.arrived(2, from: "b")
        _ = places.arrived(3, from: "b")
        #expect(places.arrived(4, from: "b") == .taken(closing: 2))
        places.began(3)
        places.began(4)
        #expect(places.arrived(5, from: "b") == .refused)
        #expect(places.arrived(6, from: "a") == .taken(closing: nil))
        places.left(3)
        #expect(places.arrived(7, from: "b") == .taken(closing: nil))
    }

    @Test func socketFilesHaveNoClientToCount() {
        var places = ConnectionSlots(limit: 100, clientLimit: 1)
        for identifier: UInt64 in 1...100 { #expect(places.arrived(identifier, from: nil) == .taken(closing: nil)) }
    }

    @Test func whoLeftTwiceCountsOnce() {
        var places = ConnectionSlots(limit: 4, clientLimit: 2)
        _ = places.arrived(1, from: "a")
        _ = places.arrived(2, from: "a")
        places.left(1)
        places.left(1)
        _ = places.arrived(3, from: "a")
        #expect(places.arrived(4, from: "a") == .taken(closing: 2))
    }
}
