import GatewayConfiguration
import GatewayCore
import Rooms
import StreamTransport
import Testing

@Suite("Rooms that one client has made")
struct RoomHubTests {
    private static let ann = RoomClientKey.user("ann")

    /// Its clock stands still.
    private static func hub(total: Int = 100, perClient: Int) -> RoomHub {
        var settings = RoomSettings()
        var policy = RoomPolicy(name: "kept", pattern: RoomPattern("*"))
        policy.historySize = 10
        settings.policies = [policy]
        settings.maximumRooms = total
        settings.maximumRoomsPerClient = perClient
        return RoomHub(loops: [], settings: settings, randomWords: { _ in [7] })
    }

    /// A room that is kept without members, because its history has begun.
    private static func make(_ name: String, in hub: RoomHub, for client: RoomClientKey? = Self.ann) throws {
        let room = try hub.acquire(name, for: client)
        _ = try room.history(Command.HistoryRequest(), now: hub.now)
        hub.release(room)
    }

    private static func expectRefused(
        _ name: String, in hub: RoomHub, _ error: RoomHub.AcquireError = .tooManyRoomsOfClient,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(throws: error, sourceLocation: sourceLocation) { try Self.make(name, in: hub) }
    }

    @Test func furtherRoomIsRefusedToTheClientAlone() throws {
        let hub = Self.hub(perClient: 2)
        for name in ["a", "b"] { try Self.make(name, in: hub) }
        Self.expectRefused("c", in: hub)
        #expect(hub.counters.roomsRefusedToClients == 1 && hub.counters.refusedRooms == 0)
        try Self.make("a", in: hub)
        try Self.make("c", in: hub, for: .user("bob"))
        try Self.make("d", in: hub, for: nil)
        #expect(hub.roomCount == 4)
    }

    @Test func roomInUseDoesNotCount() throws {
        let hub = Self.hub(perClient: 1)
        try Self.make("a", in: hub)
        let used = try hub.acquire("a", for: .user("bob"))
        try Self.make("b", in: hub)
        Self.expectRefused("c", in: hub)
        let again = try hub.acquire("a", for: nil)
        hub.release(used)
        Self.expectRefused("c", in: hub)
        hub.release(again)
        let other = try hub.acquire("b")
        // `a` counts again, whoever used it last.
        Self.expectRefused("c", in: hub)
        hub.release(other)
        #expect(hub.roomCount == 2)
    }

    @Test func roomThatKeepsNothingIsNotCounted() throws {
        let hub = Self.hub(perClient: 1)
        for number in 0..<10 { hub.release(try hub.acquire("\(number)", for: Self.ann)) }
        #expect(hub.roomCount == 0)
        try Self.make("a", in: hub)
        Self.expectRefused("b", in: hub)
    }

    @Test func oneClientGetsNoMoreThanHalfOfAllRooms() throws {
        let hub = Self.hub(total: 4, perClient: 1000)
        for name in ["a", "b"] { try Self.make(name, in: hub) }
        Self.expectRefused("c", in: hub)
        for name in ["c", "d"] { try Self.make(name, in: hub, for: .user("bob")) }
        Self.expectRefused("e", in: hub, .tooManyRooms)
        #expect(hub.counters.roomsRefusedToClients == 1 && hub.counters.refusedRooms == 1)
    }

    @Test func clientWithoutANameIsItsAddress() {
        let address = SocketAddress.ipv4(address: 0x0A01_0001, port: 5000)
        #expect(
            RoomClientKey(user: "", address: address)
                == RoomClientKey(
                    user: "", address: .ipv4(address: 0x0A01_0001, port: 6000)))
        #expect(RoomClientKey(user: "ann", address: address) == Self.ann)
        #expect(
            RoomClientKey(user: "", address: .unix(path: "/run/x")) == nil
                && RoomClientKey(user: "", address: nil) == nil)
        // One customer usually has a whole /64.
        #expect(
            RoomClientKey(user: "", address: .ipv6(high: 7, low: 1, scope: 0, port: 1))
                == RoomClientKey(
                    user: "", address: .ipv6(high: 7, low: 2, scope: 0, port: 2)))
    }
}

@Suite("Rates of clients beyond their connections")
struct ClientRatesTests {
    private static func use(_ rates: ClientRates, _ user: String, at now: Duration) {
        rates.use(.user(user), at: now) { meters in
            var meter = RateMeter(rate: 10, now: now)
            _ = meter.count(at: now)
            meters.add(meter, ofPublicationsIn: "p", at: now)
        }
    }

    @Test func tableForgetsClientsWhoseMetersAreFullAgain() {
        let rates = ClientRates()
        for number in 0..<ClientRates.limit { Self.use(rates, "\(number)", at: .zero) }
        let later = Duration.seconds(2)
        Self.use(rates, "7", at: later)
        #expect(rates.count == ClientRates.limit)
        Self.use(rates, "ann", at: later)
        #expect(rates.count == 2)
        #expect(rates.meters(of: .user("7"))?.isUnused(at: later) == false)
    }

    @Test func tableHasNoClientThatUsedUpNothing() {
        let rates = ClientRates()
        rates.use(.user("ann"), at: .zero) { _ in }
        #expect(rates.count == 0 && rates.meters(of: .user("ann")) == nil)
    }

    @Test func tableOfActiveClientsBeginsAnewWhenItIsFull() {
        let rates = ClientRates()
        for number in 0..<(ClientRates.limit + 5) { Self.use(rates, "\(number)", at: .zero) }
        #expect(rates.count == 5)
    }
}
