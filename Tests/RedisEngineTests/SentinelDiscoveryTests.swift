import RedisEngine
import Testing

@Suite("Discovery by Sentinel")
struct SentinelDiscoveryTests {
    private static let sentinels = (1...3).map { RedisEndpoint(host: "s\($0)", port: 26379) }
    private static let primary = RedisEndpoint(host: "127.0.0.1", port: 45511)

    private static func value(_ reply: RecordedReply) throws -> RedisValue {
        try #require(Readings.of([reply.bytes]).values.last)
    }

    private static func ask(_ number: Int, _ deadline: Int) -> SentinelDiscovery.Action {
        .ask(
            self.sentinels[number - 1], RedisCommand("SENTINEL", "get-master-addr-by-name", "rooms"),
            deadline: .seconds(deadline))
    }

    private static func check(_ deadline: Int) -> SentinelDiscovery.Action {
        .check(self.primary, RedisCommand("ROLE"), deadline: .seconds(deadline))
    }

    private static func machine() -> SentinelDiscovery {
        SentinelDiscovery(sentinels: self.sentinels, name: "rooms")
    }

    @Test func namedPrimaryIsFoundAfterItsRole() throws {
        var machine = Self.machine()
        #expect(machine.start(now: .zero) == Self.ask(1, 2))
        #expect(machine.replied(try Self.value(.primaryAddress), now: .seconds(1)) == Self.check(3))
        #expect(machine.nextDeadline == .seconds(3))
        #expect(machine.replied(try Self.value(.role), now: .seconds(2)) == .found(Self.primary))
        #expect(machine.nextDeadline == nil)
    }

    @Test func sentinelThatAnsweredIsAskedFirstNextTime() throws {
        var machine = Self.machine()
        _ = machine.start(now: .zero)
        #expect(machine.failed(now: .zero) == Self.ask(2, 2))
        _ = machine.replied(try Self.value(.primaryAddress), now: .zero)
        #expect(machine.replied(try Self.value(.role), now: .zero) == .found(Self.primary))
        #expect(machine.start(now: .zero) == Self.ask(2, 2))
        #expect(machine.failed(now: .zero) == Self.ask(1, 2))
    }

    @Test func eachUselessSentinelHasItsReason() throws {
        var machine = Self.machine()
        _ = machine.start(now: .zero)
        #expect(machine.replied(try Self.value(.unknownPrimary), now: .zero) == Self.ask(2, 2))
        #expect(machine.deadlineReached(now: .seconds(1)) == .ignore)
        #expect(machine.deadlineReached(now: .seconds(2)) == Self.ask(3, 4))
        #expect(machine.replied(try Self.value(.primaryAddress), now: .seconds(2)) == Self.check(4))
        let failures = [
            SentinelDiscovery.Failure.Reason.unknownName, .unreachable, .notPrimary(Self.primary),
        ]
        guard case .failed(let found) = machine.replied(try Self.value(.roleOfReplica), now: .seconds(3)) else {
            Issue.record("goes on")
            return
        }
        #expect(found.map(\.reason) == failures)
        #expect(found.map(\.sentinel) == Self.sentinels)
        #expect("\(found[2])" == "127.0.0.1:45511, which s3:26379 named, is no primary")
        #expect(machine.start(now: .zero) == Self.ask(1, 2))
    }

    @Test func primaryThatDoesNotAnswerIsAReason() throws {
        for fails in [true, false] {
            var machine = SentinelDiscovery(sentinels: [Self.sentinels[0]], name: "rooms")
            _ = machine.start(now: .zero)
            _ = machine.replied(try Self.value(.primaryAddress), now: .zero)
            let action = fails ? machine.failed(now: .zero) : machine.deadlineReached(now: .seconds(2))
            guard case .failed(let found) = action else {
                Issue.record("goes on")
                continue
            }
            #expect(found.map(\.reason) == [.primaryUnreachable(Self.primary)])
        }
    }

    @Test(arguments: [
        RedisValue.array([.blob("a")]), .array([.blob(""), .blob("1")]), .array([.blob("a"), .blob("0")]),
        .array([.blob("a"), .blob("65536")]), .array([.blob("a"), .null]), .number(1), .simple("OK"),
    ])
    func malformedAddressIsAReason(_ reply: RedisValue) {
        var machine = SentinelDiscovery(sentinels: [Self.sentinels[0]], name: "rooms")
        _ = machine.start(now: .zero)
        guard case .failed(let found) = machine.replied(reply, now: .zero) else {
            Issue.record("accepted")
            return
        }
        #expect(found.map(\.reason) == [.malformedReply])
    }

    @Test func refusalIsAReason() {
        var machine = SentinelDiscovery(sentinels: [Self.sentinels[0]], name: "rooms")
        _ = machine.start(now: .zero)
        guard case .failed(let found) = machine.replied(.error("NOAUTH no"), now: .zero) else {
            Issue.record("accepted")
            return
        }
        #expect(found.map(\.description) == ["the sentinel s1:26379 refused: NOAUTH no"])
    }

    @Test func eventsOutOfPlaceAreIgnored() throws {
        var machine = Self.machine()
        #expect(machine.replied(.null, now: .zero) == .ignore)
        #expect(machine.failed(now: .zero) == .ignore)
        #expect(machine.deadlineReached(now: .seconds(9)) == .ignore)
        _ = machine.start(now: .zero)
        #expect(machine.start(now: .zero) == .ignore)
        _ = machine.replied(try Self.value(.primaryAddress), now: .zero)
        #expect(machine.start(now: .zero) == .ignore)
        var none = SentinelDiscovery(sentinels: [], name: "rooms")
        #expect(none.start(now: .zero) == .failed([]))
    }

    @Test func switchOfThePrimaryIsAHint() throws {
        let push = try Self.value(.switched).array()
        #expect(try push[1].text() == SentinelDiscovery.switchChannel)
        let machine = Self.machine()
        #expect(
            machine.newPrimary(inMessage: try push[2].bytes()) == RedisEndpoint(host: "127.0.0.1", port: 34597))
        for other in ["other a 1 b 2", "rooms a 1 b", "rooms a 1 b 0", "rooms a 1 b x", "", "rooms a 1 b 2 c"] {
            #expect(machine.newPrimary(inMessage: Array(other.utf8)) == nil)
        }
    }
}
