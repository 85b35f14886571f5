import Rooms
import Testing

@Suite("Room history")
struct RoomHistoryTests {
    private static func policy(size: Int = 10, bytes: Int = 1 << 20, recovery: RoomPolicy.Recovery = .stream)
        -> RoomPolicy
    {
        var policy = RoomPolicy(name: "p", pattern: RoomPattern("*"))
        policy.historySize = size
        policy.historyBytes = bytes
        policy.historyTime = .seconds(60)
        policy.recovery = recovery
        return policy
    }

    private static func history(_ count: Int, _ policy: RoomPolicy = policy()) -> RoomHistory {
        var history = RoomHistory(epoch: "e")
        for number in 0..<count { _ = history.append(Self.publication(number + 1), policy: policy, now: .zero) }
        return history
    }

    private static func publication(_ number: Int, size: Int? = nil) -> Publication {
        Publication(.json(size.map { [UInt8](repeating: UInt8(ascii: "1"), count: $0) } ?? Array(String(number).utf8)))
    }

    @Test func publicationsAreNumberedFromOne() {
        var history = RoomHistory(epoch: "e")
        #expect(history.position == StreamPosition(offset: 0, epoch: "e"))
        #expect(history.append(Self.publication(1), policy: Self.policy(), now: .zero).offset == 1)
        #expect(history.append(Self.publication(2), policy: Self.policy(), now: .zero).offset == 2)
        #expect(history.position == StreamPosition(offset: 2, epoch: "e"))
    }

    @Test func oldestPublicationsLeaveAboveTheSize() throws {
        let history = Self.history(25)
        #expect(try history.read(limit: -1, since: nil, isReversed: false).map(\.offset) == Array(16...25))
        #expect(history.position.offset == 25)
    }

    @Test func bytesAreBoundedButTheNewestStays() throws {
        var history = RoomHistory(epoch: "e")
        let policy = Self.policy(bytes: 10_000)
        for number in 0..<8 { _ = history.append(Self.publication(number, size: 4000), policy: policy, now: .zero) }
        #expect(history.count == 2 && history.cost <= 10_000)
        _ = history.append(Self.publication(9, size: 50_000), policy: policy, now: .zero)
        #expect(try history.read(limit: -1, since: nil, isReversed: false).map(\.offset) == [9])
    }

    @Test func entriesOfAnotherNodeExpireWithTheirHistory() {
        var history = RoomHistory(
            position: StreamPosition(offset: 1, epoch: "e"), publications: [Self.publication(1)], floor: 0,
            policy: Self.policy(), now: .seconds(10))
        history.limitExpiry(to: .seconds(100))
        #expect(history.expiry == .seconds(70))
        history.limitExpiry(to: .seconds(20))
        #expect(history.expiry == .seconds(20))
        _ = history.append(Self.publication(2), policy: Self.policy(), now: .seconds(15))
        #expect(history.expiry == .seconds(75))
    }

    @Test func entriesExpireAfterTheLastPublicationAndThePositionStays() {
        var history = RoomHistory(epoch: "e")
        _ = history.append(Self.publication(1), policy: Self.policy(), now: .seconds(0))
        _ = history.append(Self.publication(2), policy: Self.policy(), now: .seconds(50))
        history.expire(.seconds(109))
        #expect(history.count == 2)
        history.expire(.seconds(110))
        #expect(history.count == 0 && history.cost == 0 && history.position.offset == 2)
        #expect(history.append(Self.publication(3), policy: Self.policy(), now: .seconds(111)).offset == 3)
    }

    @Test(
        arguments: [
            (0, nil, false, []), (-1, nil, false, [1, 2, 3, 4, 5]), (2, nil, false, [1, 2]), (2, nil, true, [5, 4]),
            (-1, 3, false, [4, 5]), (1, 3, false, [4]), (-1, 3, true, [2, 1]), (-1, 0, false, [1, 2, 3, 4, 5]),
            (-1, 5, false, []), (-1, 9, false, []), (1, 9, true, [5]), (-1, 1, true, []),
        ] as [(Int, UInt64?, Bool, [UInt64])])
    func readingHonoursLimitSinceAndDirection(_ limit: Int, _ since: UInt64?, _ isReversed: Bool, _ expected: [UInt64])
        throws
    {
        let position = since.map { StreamPosition(offset: $0, epoch: "e") }
        let publications = try Self.history(5).read(limit: limit, since: position, isReversed: isReversed)
        #expect(publications.map(\.offset) == expected)
    }

    @Test func readingFromAnotherEpochIsRefused() {
        #expect(throws: RoomHistory.RequestError.unrecoverablePosition) {
            try Self.history(5).read(limit: -1, since: StreamPosition(offset: 2, epoch: "f"), isReversed: false)
        }
    }

    @Test(
        arguments: [
            (5, "e", [], true), (3, "e", [4, 5], true), (0, "e", [1, 2, 3, 4, 5], true),
            (0, "", [1, 2, 3, 4, 5], true),
            (6, "e", [], false), (3, "f", [], false), (5, "f", [], false), (3, "", [], false), (.max, "e", [], false),
        ] as [(UInt64, String, [UInt64], Bool)])
    func clientRecoversOrIsReportedAsNotRecovered(
        _ offset: UInt64, _ epoch: String, _ expected: [UInt64], _ isComplete: Bool
    ) {
        let recovered = Self.history(5).recover(
            from: StreamPosition(offset: offset, epoch: epoch), mode: .stream, limit: 10)
        #expect(recovered.publications.map(\.offset) == expected && recovered.isComplete == isComplete)
    }

    @Test func gapAtTheBeginningCannotBeRecovered() {
        let history = Self.history(25)
        #expect(history.recover(from: StreamPosition(offset: 15, epoch: "e"), mode: .stream, limit: 10).isComplete)
        #expect(!history.recover(from: StreamPosition(offset: 14, epoch: "e"), mode: .stream, limit: 10).isComplete)
        #expect(!history.recover(from: StreamPosition(offset: 15, epoch: "e"), mode: .stream, limit: 9).isComplete)
    }

    private static func recovered(_ history: RoomHistory, from offset: UInt64) -> [UInt64]? {
        let found = history.recover(from: StreamPosition(offset: offset, epoch: "e"), mode: .stream, limit: 10)
        return found.isComplete ? found.publications.map(\.offset) : nil
    }

    @Test func removedPublicationIsLeftOutOfWhatIsRecovered() {
        var history = Self.history(5)
        #expect(history.remove(offset: 4) && !history.remove(offset: 4))
        #expect(Self.recovered(history, from: 2) == [3, 5])
        #expect(Self.recovered(history, from: 3) == [5])
        #expect(Self.recovered(history, from: 4) == [5])
        for offset: UInt64 in [1, 2, 3, 5] { _ = history.remove(offset: offset) }
        #expect(history.count == 0)
        #expect(Self.recovered(history, from: 0) == [])
    }

    @Test func whatTheHistoryDroppedIsNotRecoveredAlsoWhereOthersWereRemoved() {
        var history = Self.history(25)
        #expect(history.remove(offset: 16) && history.remove(offset: 20))
        #expect(Self.recovered(history, from: 14) == nil)
        #expect(Self.recovered(history, from: 15) == [17, 18, 19, 21, 22, 23, 24, 25])
        history.removeAll()
        #expect(Self.recovered(history, from: 24) == nil)
        #expect(Self.recovered(history, from: 25) == [])
    }

    @Test func historyOfAnotherNodeIsCompleteAfterItsFloor() {
        var policy = RoomPolicy(name: "p", pattern: RoomPattern("*"))
        policy.historySize = 10
        let kept = [4, 6, 7].map { (offset: UInt64) in
            var publication = Publication(.json([0x31]))
            publication.offset = offset
            return publication
        }
        var history = RoomHistory(
            position: StreamPosition(offset: 8, epoch: "e"), publications: kept, floor: 3, policy: policy, now: .zero)
        #expect(Self.recovered(history, from: 2) == nil)
        #expect(Self.recovered(history, from: 3) == [4, 6, 7])
        #expect(Self.recovered(history, from: 7) == [])
        let appended = history.append(Publication(.json([0x31])), at: 11, policy: policy, now: .zero)
        #expect(appended.offset == 11)
        #expect(Self.recovered(history, from: 6) == [7, 11])
    }

    @Test func cacheModeReturnsTheNewestAlone() {
        let history = Self.history(5)
        let behind = history.recover(from: StreamPosition(offset: 1, epoch: "f"), mode: .cache, limit: 10)
        #expect(behind.publications.map(\.offset) == [5] && behind.isComplete)
        let current = history.recover(from: history.position, mode: .cache, limit: 10)
        #expect(current.publications.isEmpty && current.isComplete)
        let empty = RoomHistory(epoch: "e").recover(from: StreamPosition(), mode: .cache, limit: 10)
        #expect(empty.publications.isEmpty && !empty.isComplete)
        let again = RoomHistory(epoch: "e").recover(from: StreamPosition(epoch: "e"), mode: .cache, limit: 10)
        #expect(again.publications.isEmpty && !again.isComplete)
    }

    @Test func cacheModeDoesNotRepeatWhatWasBeforeARemovedPublication() {
        var history = Self.history(5)
        let isRemoved = history.remove(offset: 5)
        #expect(isRemoved)
        let position = StreamPosition(offset: 4, epoch: history.position.epoch)
        let behind = history.recover(from: position, mode: .cache, limit: 10)
        #expect(behind.publications.isEmpty && behind.isComplete)
        let earlier = StreamPosition(offset: 3, epoch: history.position.epoch)
        #expect(history.recover(from: earlier, mode: .cache, limit: 10).publications.map(\.offset) == [4])
        let other = StreamPosition(offset: 4, epoch: "other")
        #expect(history.recover(from: other, mode: .cache, limit: 10).publications.map(\.offset) == [4])
    }
}

@Suite("Room patterns and presence")
struct RoomPatternTests {
    @Test(arguments: [
        ("*", "", true), ("*", "a", true), ("a", "a", true), ("a", "ab", false), ("a*", "abc", true),
        ("*c", "abc", true),
        ("a*c", "abc", true), ("a*c", "ac", true), ("a*c", "a", false), ("aa*aa", "aaa", false),
        ("a*b*c", "axbyc", true),
        ("a*b*c", "acb", false), ("news:*", "news:", true), ("news:*", "new", false), ("**", "x", true), ("", "", true),
        ("", "a", false), ("*a*a*", "aa", true), ("*a*a*", "a", false), ("é*", "été", true),
    ])
    func starMatchesAnyText(_ pattern: String, _ name: String, _ matches: Bool) {
        #expect(RoomPattern(pattern).matches(name) == matches)
    }

    @Test func presenceCountsConnectionsAndUsers() {
        var presence = Presence()
        presence.add(ClientInfo(user: "ann", client: "1"))
        presence.add(ClientInfo(user: "ann", client: "2"))
        presence.add(ClientInfo(user: "bob", client: "3"))
        presence.add(ClientInfo(user: "bob", client: "3"))
        #expect(presence.clientCount == 3 && presence.userCount == 2)
        #expect(presence.remove(client: "1")?.user == "ann" && presence.remove(client: "1") == nil)
        #expect(presence.userCount == 2 && presence.contains(user: "ann"))
        #expect(presence.remove(client: "2") != nil && presence.userCount == 1 && !presence.contains(user: "ann"))
        #expect(presence.all.map(\.client) == ["3"])
    }

    @Test func presenceIsListedUpToALimit() throws {
        var presence = Presence()
        var size = 0
        for client in ["b", "a", "c"] {
            let info = ClientInfo(user: "ann", client: client, connectionInfo: .json(Array(#"{"x":1}"#.utf8)))
            size += info.estimatedSize
            presence.add(info)
        }
        #expect(size > 3 * 7)
        #expect(presence.all(upTo: size)?.map(\.client) == ["a", "b", "c"])
        #expect(presence.all(upTo: size - 1) == nil)
    }
}
