import SessionTasks
import Testing

@Suite("Distributions")
struct DistributionTests {
    @Test(
        arguments: [
            (0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11), (UInt64(1) << 38, 38),
            ((UInt64(1) << 38) + 1, 39), (.max, 39),
        ] as [(UInt64, Int)])
    func valueIsCountedInItsSmallestBucket(_ value: UInt64, _ exponent: Int) {
        var distribution = Distribution()
        distribution.add(value)
        #expect(distribution.count(upTo: exponent) == 1)
        #expect(exponent == 0 || distribution.count(upTo: exponent - 1) == 0)
    }

    @Test func durationsCountAsMicroseconds() {
        var distribution = Distribution()
        distribution.add(.milliseconds(2))
        distribution.add(.seconds(-1))
        #expect(distribution.sum == 2000)
        #expect(distribution.count == 2)
    }

    @Test func distributionsAdd() {
        var one = Distribution()
        one.add(3)
        var other = Distribution()
        other.add(100)
        one.add(other)
        #expect(one.count == 2)
        #expect(one.sum == 103)
        #expect(one.count(upTo: 2) == 1)
        #expect(one.count(upTo: 7) == 2)
    }

    @Test func roundTripsKeepTheLastSixteen() throws {
        var trips = RoundTrips()
        #expect(trips.last == nil)
        for milliseconds in 1...20 { trips.add(.milliseconds(milliseconds)) }
        #expect(trips.last == .milliseconds(20))
        #expect(trips.count == 20)
        #expect(trips.quantile(0.5) == .milliseconds(12))
        #expect(trips.quantile(0.99) == .milliseconds(20))
        #expect(trips.quantile(0) == .milliseconds(5))
    }
}
