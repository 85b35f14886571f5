import GatewayCore
import Testing

@Suite("Inboxes of clients without a WebSocket")
struct EmulatedInboxesTests {
    @Test func loopIsNotifiedOnceUntilItFindsNothing() {
        let inboxes = EmulatedInboxes()
        inboxes.open("s", loop: 3)
        #expect(inboxes.add([1], to: "s") == .added(loop: 3, isAnnounced: false))
        #expect(inboxes.add([2], to: "s") == .added(loop: 3, isAnnounced: true))
        #expect(inboxes.next(of: "s") == [1] && inboxes.next(of: "s") == [2] && inboxes.next(of: "s") == nil)
        #expect(inboxes.add([3], to: "s") == .added(loop: 3, isAnnounced: false))
    }

    @Test func clientThatIsUnknownOrGoneGetsNothing() {
        let inboxes = EmulatedInboxes()
        inboxes.open("s", loop: 0)
        #expect(inboxes.add([1], to: "t") == .unknownClient)
        inboxes.close("s")
        #expect(inboxes.add([1], to: "s") == .unknownClient && inboxes.next(of: "s") == nil)
    }

    @Test func inboxAboveItsLimitIsClosed() {
        let inboxes = EmulatedInboxes()
        inboxes.open("s", loop: 1)
        let half = [UInt8](repeating: 0, count: EmulatedInboxes.limit / 2)
        #expect(inboxes.add(half, to: "s") == .added(loop: 1, isAnnounced: false))
        #expect(inboxes.next(of: "s") == half)
        #expect(inboxes.add(half, to: "s") == .added(loop: 1, isAnnounced: true))
        #expect(inboxes.add(half, to: "s") == .overflowed(loop: 1))
        #expect(inboxes.add([1], to: "s") == .unknownClient)
    }

    @Test func emptyMessagesAreBoundedToo() {
        let inboxes = EmulatedInboxes()
        inboxes.open("s", loop: 1)
        let accepted = (0..<EmulatedInboxes.limit).prefix { _ in inboxes.add([], to: "s") != .overflowed(loop: 1) }
        #expect(accepted.count < 10_000)
    }
}
