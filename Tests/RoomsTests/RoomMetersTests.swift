import Rooms
import Testing

@Suite("Rates of a client on several connections")
struct RoomMetersTests {
    private static func policy(rate: Int?) -> RoomPolicy {
        var policy = RoomPolicy(name: "p", pattern: RoomPattern("*"))
        policy.publicationRate = rate
        return policy
    }

    /// Of a client that has published so many messages at once.
    private static func meters(_ count: Int, rate: Int = 4, at now: Duration = .zero) -> RoomMeters {
        var meter = RateMeter(rate: rate, now: now)
        for _ in 0..<count { _ = meter.count(at: now) }
        var meters = RoomMeters()
        meters.add(meter, ofPublicationsIn: "p", at: now)
        return meters
    }

    private static func left(_ meters: RoomMeters, rate: Int = 4, at now: Duration = .zero) -> Int {
        guard var meter = meters.publications(of: Self.policy(rate: rate)) else { return rate }
        return (0..<100).prefix { _ in meter.allows(at: now) }.count
    }

    @Test func nextConnectionHasWhatTheFormerOneHasLeft() {
        var meters = RoomMeters()
        meters.addPublications(of: Self.meters(3), at: .zero)
        #expect(Self.left(meters) == 1)
        #expect(Self.left(meters, at: .milliseconds(500)) == 3)
        #expect(Self.left(meters, at: .seconds(1)) == 4)
    }

    @Test func ofSeveralConnectionsTheOneThatPublishedMostCounts() {
        for order in [[1, 3], [3, 1]] {
            var meters = RoomMeters()
            for count in order { meters.addPublications(of: Self.meters(count), at: .zero) }
            #expect(Self.left(meters) == 1)
        }
    }

    @Test func metersThatAreFullAgainAreForgotten() {
        let used = Self.meters(4)
        #expect(!used.isUnused(at: .milliseconds(999)) && used.isUnused(at: .seconds(1)))
        var meters = RoomMeters()
        meters.addPublications(of: used, at: .seconds(1))
        #expect(meters.publications(of: Self.policy(rate: 4)) == nil)
    }

    @Test func reloadWithAnotherRateBeginsAnew() {
        let meters = Self.meters(4)
        #expect(
            meters.publications(of: Self.policy(rate: 5)) == nil
                && meters.publications(of: Self.policy(rate: nil)) == nil)
        var faster = meters
        faster.addPublications(of: Self.meters(1, rate: 5), at: .zero)
        #expect(Self.left(faster, rate: 5) == 4)
    }

    @Test func eventThatCannotBeRefusedDelaysTheNext() {
        var meter = RateMeter(rate: 2, now: .zero)
        #expect(meter.delay(at: .zero) == .zero && meter.count(at: .zero) == .zero)
        #expect(meter.count(at: .zero) == .milliseconds(500) && meter.delay(at: .zero) == .milliseconds(500))
        #expect(!meter.allows(at: .milliseconds(499)) && meter.allows(at: .milliseconds(500)))
    }
}
