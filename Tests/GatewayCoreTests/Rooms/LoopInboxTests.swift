import GatewayConfiguration
import GatewayCore
import Rooms
import StreamTransport
import TestSupport
import Testing

@Suite("Messages of rooms on their way to a loop")
struct LoopInboxTests {
    private static func hub() -> RoomHub { RoomHub(loops: [], randomWords: { _ in [7] }) }

    @Test func roomIsListedOnceUntilItIsTaken() throws {
        let hub = Self.hub()
        let inbox = LoopInbox()
        let (first, second) = (hub.acquire("a"), hub.acquire("b"))
        #expect(inbox.add(first, cost: 1, from: nil).notifiesReceiver)
        #expect(!inbox.add(first, cost: 1, from: nil).notifiesReceiver)
        #expect(!inbox.add(second, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.next() === first && inbox.next() === second && inbox.next() == nil)
        #expect(inbox.add(first, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.cost == 4)
    }

    /// Else each message would be one more piece of work for the loop.
    @Test func receiverIsNotifiedOnceUntilItFindsNothing() {
        let inbox = LoopInbox()
        let room = Self.hub().acquire("a")
        #expect(inbox.add(room, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.next() === room)
        #expect(!inbox.add(room, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.next() === room && inbox.next() == nil)
        #expect(inbox.add(room, cost: 1, from: nil).notifiesReceiver)
    }

    @Test func roomWithMoreMessagesIsListedAgain() {
        let inbox = LoopInbox()
        let room = Self.hub().acquire("a")
        _ = inbox.add(room, cost: 10, from: nil)
        #expect(inbox.next() === room)
        #expect(inbox.took(room, cost: 4, hasMore: true).isEmpty)
        #expect(inbox.next() === room && inbox.cost == 6)
        #expect(inbox.took(room, cost: 6, hasMore: false).isEmpty)
        #expect(inbox.next() == nil && inbox.cost == 0)
    }

    @Test func senderIsWokenWhenHalfIsTaken() {
        let inbox = LoopInbox()
        let room = Self.hub().acquire("a")
        #expect(!inbox.add(room, cost: LoopInbox.highWatermark - 1, from: 3).isFull)
        #expect(inbox.add(room, cost: 1, from: 3).isFull && inbox.isFull)
        #expect(inbox.took(room, cost: LoopInbox.highWatermark - LoopInbox.lowWatermark - 1, hasMore: true).isEmpty)
        #expect(inbox.took(room, cost: 1, hasMore: true) == [3])
        #expect(inbox.took(room, cost: 1, hasMore: true).isEmpty)
    }

    @Test func callersWithoutALoopAreNotWoken() {
        let inbox = LoopInbox()
        let room = Self.hub().acquire("a")
        #expect(inbox.add(room, cost: 2 << 20, from: nil).isFull)
        #expect(inbox.took(room, cost: 2 << 20, hasMore: false).isEmpty)
    }
}

@Suite("Rooms that all loops share")
struct RoomHubTests {
    private static func policy(_ change: (inout RoomPolicy) -> Void) -> RoomPolicy {
        var policy = RoomPolicy(name: "all", pattern: RoomPattern("*"))
        policy.historySize = 10
        change(&policy)
        return policy
    }

    private static func hub(_ change: (inout RoomPolicy) -> Void = { _ in }) -> RoomHub {
        let hub = RoomHub(loops: [], randomWords: { _ in [7] })
        var settings = hub.currentSettings
        settings.policies = [Self.policy(change)]
        hub.apply(settings)
        return hub
    }

    private static func publication(_ text: String) -> Publication { Publication(.json(Array(text.utf8))) }

    @Test func roomWithAHistoryStaysWithoutMembers() throws {
        let hub = Self.hub()
        let position = try hub.publish(Self.publication("1"), in: "a")
        #expect(position == StreamPosition(offset: 1, epoch: "0000000000000007"))
        #expect(hub.rooms.map(\.name) == ["a"])
        #expect(try hub.publish(Self.publication("2"), in: "a").offset == 2)
    }

    @Test func roomThatKeepsNothingIsRemoved() throws {
        let hub = Self.hub { $0.historySize = 0 }
        #expect(try hub.publish(Self.publication("1"), in: "a").offset == 0)
        #expect(hub.roomCount == 0)
    }

    @Test func unknownRoomIsRefusedWherePoliciesExist() {
        let hub = Self.hub { $0.pattern = RoomPattern("news:*") }
        #expect(throws: RoomHub.PublishError.unknownRoom) { try hub.publish(Self.publication("1"), in: "a") }
        #expect(hub.acquireExisting("a") == nil)
    }

    @Test func idempotencyKeyPublishesOnce() throws {
        let hub = Self.hub()
        let first = try hub.publish(Self.publication("1"), in: "a", idempotencyKey: "k")
        #expect(try hub.publish(Self.publication("2"), in: "a", idempotencyKey: "k") == first)
        #expect(try hub.publish(Self.publication("3"), in: "a", idempotencyKey: "l").offset == 2)
        #expect(hub.counters[.publications] == 2)
    }

    @Test func publicationOutsideTheHistoryHasNoOffset() throws {
        let hub = Self.hub()
        _ = try hub.publish(Self.publication("1"), in: "a")
        #expect(try hub.publish(Self.publication("2"), in: "a", skipsHistory: true).offset == 1)
        let room = try #require(hub.acquireExisting("a"))
        var request = Command.HistoryRequest()
        request.limit = -1
        let history = try room.history(request, now: hub.now)
        #expect(history.publications.map(\.data) == [.json(Array("1".utf8))])
    }

    @Test func newPolicyAppliesToRoomsThatExist() throws {
        let hub = Self.hub()
        _ = try hub.publish(Self.publication("1"), in: "a")
        var settings = hub.currentSettings
        settings.policies = [Self.policy { $0.historySize = 0 }]
        hub.apply(settings)
        let room = try #require(hub.acquireExisting("a"))
        #expect(room.counts(now: hub.now).publications == 0 && room.counts(now: hub.now).position == nil)
    }

    @Test func moderationEndsAfterItsTime() {
        let moderation = Moderation()
        let ban = Moderation.Entry(kind: .ban, user: "ann", room: "a")
        #expect(moderation.add(ban, until: .seconds(10), now: .zero))
        #expect(moderation.contains(.ban, user: "ann", room: "a", now: .seconds(9)))
        #expect(!moderation.contains(.ban, user: "ann", room: "b", now: .seconds(9)))
        #expect(!moderation.contains(.mute, user: "ann", room: "a", now: .seconds(9)))
        #expect(!moderation.contains(.ban, user: "ann", room: "a", now: .seconds(10)))
        let everywhere = Moderation.Entry(kind: .mute, user: "bob", room: nil)
        #expect(moderation.add(everywhere, until: .seconds(10), now: .zero))
        #expect(moderation.contains(.mute, user: "bob", room: "any", now: .zero))
        #expect(moderation.all(now: .seconds(1)).map(\.entry.user) == ["ann", "bob"])
        #expect(moderation.remove(everywhere) && !moderation.remove(everywhere))
    }
}
