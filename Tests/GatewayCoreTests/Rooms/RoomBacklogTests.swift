import GatewayCore
import Rooms
import SessionTasks
import TestSupport
import Testing

/// The limits that rooms have by default. Operators publish, so that only members that do not read take memory.
@Suite("Messages that wait for members which do not read")
struct RoomBacklogTests {
    /// A member that does not read, in a room of its own.
    private final class SlowMember {
        private static let piece = Publication(.json(Array("\"\(String(repeating: "x", count: 16_000))\"".utf8)))
        private let chat: ChatScene
        private let room: String
        private let task: WebSocketTask

        init(_ room: String, _ chat: ChatScene) throws {
            self.chat = chat
            self.room = room
            try chat.client(on: 0, "/chat/\(room)").peer.isReading = false
            guard case .webSocket(let task) = try chat.task(on: 0) else { throw ChatSceneFailure.loopNotMet }
            self.task = task
        }

        var isMember: Bool { self.task.stage == .open }
        /// What its room keeps for it, in bytes.
        var waiting: Int { self.task.waitingBytes }

        /// Publishes in the room, until so much waits for the member, or it is removed.
        func fill(to size: Int) {
            while self.isMember, self.waiting < size {
                self.chat.gateway.begin(inHomeOf: self.room) { [room = self.room] in
                    $0.publish(Self.piece, in: room) { _ in }
                }
                self.chat.scene.settle()
            }
        }
    }

    @Test func memberOfALoopThatKeepsMoreThan64MiBMayHave256KiBWaiting() throws {
        let chat = try ChatScene(loops: 1)
        let large = try (0..<16).map { try SlowMember("large-\($0)", chat) }
        let small = try (0..<28).map { try SlowMember("small-\($0)", chat) }
        for member in large { member.fill(to: 3900 << 10) }
        for member in small { member.fill(to: 140 << 10) }
        let kept = (large + small).reduce(0) { $0 + $1.waiting }
        #expect(kept > 64 << 20 && kept < 66 << 20)
        #expect((large + small).allSatisfy { $0.isMember })
        // Together with what its connection has.
        small[0].fill(to: 256 << 10)
        #expect(!small[0].isMember && small[1].isMember)
        // One that has more already is removed with the next message.
        large[0].fill(to: large[0].waiting + 1)
        #expect(!large[0].isMember && large[1].isMember)
        // Now the loop keeps less.
        small[1].fill(to: 1 << 20)
        #expect(small[1].isMember)
        chat.scene.finish()
    }

    @Test func memberMayHave4MiBWaiting() throws {
        let chat = try ChatScene(loops: 1)
        let member = try SlowMember("room", chat)
        member.fill(to: 3900 << 10)
        #expect(member.isMember)
        member.fill(to: 4 << 20)
        #expect(!member.isMember && member.waiting == 0)
        chat.scene.finish()
    }
}
