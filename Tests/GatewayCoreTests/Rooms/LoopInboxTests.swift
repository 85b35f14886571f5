import GatewayConfiguration
import GatewayCore
import Rooms
import StreamTransport
import TestSupport
import Testing

@Suite("Inbox of a loop for messages of rooms")
struct LoopInboxTests {
    private static func hub() -> RoomHub { RoomHub(loops: [], randomWords: { _ in [7] }) }

    @Test func roomIsListedOnceUntilItIsTaken() throws {
        let hub = Self.hub()
        let inbox = LoopInbox(limit: 1000)
        let (first, second) = (try hub.acquire("a"), try hub.acquire("b"))
        #expect(inbox.add(first, cost: 1, from: nil).notifiesReceiver)
        #expect(!inbox.add(first, cost: 1, from: nil).notifiesReceiver)
        #expect(!inbox.add(second, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.next() === first && inbox.next() === second && inbox.next() == nil)
        #expect(inbox.add(first, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.cost == 4)
    }

    /// Else each message would be one more piece of work for the loop.
    @Test func receiverIsNotifiedOnceUntilItFindsNothing() throws {
        let inbox = LoopInbox(limit: 1000)
        let room = try Self.hub().acquire("a")
        #expect(inbox.add(room, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.next() === room)
        #expect(!inbox.add(room, cost: 1, from: nil).notifiesReceiver)
        #expect(inbox.next() === room && inbox.next() == nil)
        #expect(inbox.add(room, cost: 1, from: nil).notifiesReceiver)
    }

    @Test func roomWithMoreMessagesIsListedAgain() throws {
        let inbox = LoopInbox(limit: 1000)
        let room = try Self.hub().acquire("a")
        _ = inbox.add(room, cost: 10, from: nil)
        #expect(inbox.next() === room)
        #expect(inbox.took(room, cost: 4, hasMore: true).isEmpty)
        #expect(inbox.next() === room && inbox.cost == 6)
        #expect(inbox.took(room, cost: 6, hasMore: false).isEmpty)
        #expect(inbox.next() == nil && inbox.cost == 0)
    }

    @Test func senderIsWokenWhenHalfIsTaken() throws {
        let inbox = LoopInbox(limit: 1000)
        let room = try Self.hub().acquire("a")
        #expect(!inbox.add(room, cost: 999, from: 3).isFull)
        #expect(inbox.add(room, cost: 1, from: 3).isFull && inbox.isFull)
        #expect(inbox.took(room, cost: 499, hasMore: true).isEmpty)
        #expect(inbox.took(room, cost: 1, hasMore: true) == [3])
        #expect(inbox.took(room, cost: 1, hasMore: true).isEmpty)
    }

    /// The last member of a loop takes with it what the room had for that loop.
    @Test func roomThatHasNothingMoreCostsNothing() throws {
        let inbox = LoopInbox(limit: 1000)
        let hub = Self.hub()
        let (first, second) = (try hub.acquire("a"), try hub.acquire("b"))
        _ = inbox.add(second, cost: 5, from: nil)
        #expect(inbox.add(first, cost: 1000, from: 3).isFull)
        #expect(inbox.next() === second && inbox.next() === first)
        #expect(inbox.took(first, cost: 0, hasMore: false) == [3])
        #expect(inbox.cost == 5)
        #expect(inbox.took(second, cost: 5, hasMore: false).isEmpty)
        #expect(inbox.cost == 0)
    }

    /// Another loop published while the messages before were taken.
    @Test func costOfMessagesThatComeMeanwhileStays() throws {
        let inbox = LoopInbox(limit: 1000)
        let room = try Self.hub().acquire("a")
        _ = inbox.add(room, cost: 10, from: nil)
        #expect(inbox.next() === room)
        _ = inbox.add(room, cost: 7, from: nil)
        #expect(inbox.took(room, cost: 10, hasMore: false).isEmpty)
        #expect(inbox.cost == 7 && inbox.next() === room)
        #expect(inbox.took(room, cost: 7, hasMore: false).isEmpty)
        #expect(inbox.cost == 0 && inbox.next() == nil)
    }

    @Test func callersWithoutALoopAreNotWoken() throws {
        let inbox = LoopInbox(limit: 1000)
        let room = try Self.hub().acquire("a")
        #expect(inbox.add(room, cost: 2000, from: nil).isFull)
        #expect(inbox.took(room, cost: 2000, hasMore: false).isEmpty)
    }
}

@Suite("Bans and mutes")
struct ModerationTests {
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
