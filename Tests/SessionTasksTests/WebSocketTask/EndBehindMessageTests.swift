import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

/// An end takes effect after the messages before it: the receiver of such a message may still answer it.
@Suite("A Close or a violation after a message, RFC 6455 §5.5.1")
struct EndBehindMessageTests {
    private func pair(_ role: TaskRole) throws -> (WebSocketMeeting, WebSocketTask, RawWebSocketPeer, WebSocketDiary) {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        return (meeting, task, peer, diary)
    }

    @Test(arguments: TaskRole.allCases)
    func deliveredMessageIsAnsweredBeforeTheCloseAfterIt(_ role: TaskRole) throws {
        let (meeting, task, peer, diary) = try self.pair(role)
        meeting.perform { diary.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x0F, 0xA0] + Array("enough".utf8))
        #expect(meeting.run { diary.lines == ["a:hello"] && task.closeCode != nil })
        // Readable at once, although a message is still unanswered.
        #expect(task.closeCode?.rawValue == 4000 && task.closeReason == Array("enough".utf8))
        #expect(peer.frames.isEmpty)
        meeting.perform { diary.send(task, "answer") }
        #expect(meeting.run { diary.lines.last == "answer" })
        meeting.perform { diary.receive(task, "b") }
        #expect(meeting.run { peer.close != nil })
        #expect(peer.frames.first?.payload == Array("answer".utf8) && peer.close == [0x0F, 0xA0])
        peer.peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines.last == "b!\(TaskFailure.closed)")
        #expect(diary.end?.isClean == true && diary.end?.code?.rawValue == 4000)
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func everyUnreadMessageIsAnsweredBeforeTheViolationAfterIt(_ role: TaskRole) throws {
        let (meeting, task, peer, diary) = try self.pair(role)
        for text in ["one", "two", "three"] { peer.send(1, text) }
        peer.send(3, "reserved")
        peer.send(9, "never looked at")
        meeting.meeting.settle()
        for text in ["one", "two", "three"] {
            meeting.perform {
                diary.receive(task)
                diary.send(task, text)
            }
        }
        #expect(!meeting.run(atMost: .milliseconds(900)) { diary.end != nil })
        meeting.perform { diary.receive(task) }
        #expect(meeting.run(atMost: .milliseconds(90)) { diary.end != nil && peer.close != nil })
        #expect(peer.frames.map(\.opcode) == [1, 1, 1, 8] && peer.close?.prefix(2) == [0x03, 0xEA])
        if case .protocolViolation(1002, _)? = diary.end?.failure {} else { Issue.record("\(diary.lines)") }
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func unreadMessageDelaysTheEndForABoundedTime(_ role: TaskRole) throws {
        let (meeting, task, peer, diary) = try self.pair(role)
        meeting.perform { diary.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        #expect(meeting.run { diary.lines == ["a:hello"] })
        #expect(!meeting.run(atMost: .milliseconds(900)) { peer.close != nil })
        #expect(meeting.run(atMost: .milliseconds(200)) { peer.close == [0x03, 0xE8] })
        peer.peer.finish()
        #expect(meeting.run { diary.end?.isClean == true })
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func ownCloseMeetsAHeldClose(_ role: TaskRole) throws {
        let (meeting, task, peer, diary) = try self.pair(role)
        meeting.perform { diary.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        #expect(meeting.run { task.closeCode != nil })
        meeting.perform { task.close(.goingAway) }
        #expect(meeting.run { peer.close == [0x03, 0xE9] })
        peer.peer.finish()
        #expect(meeting.run { diary.end?.isClean == true })
        #expect(diary.end?.code == .normalClosure)
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func cancelDropsUnreadMessages(_ role: TaskRole) throws {
        let (meeting, task, peer, diary) = try self.pair(role)
        meeting.perform { diary.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        #expect(meeting.run { task.closeCode != nil })
        meeting.perform {
            task.cancelOnLoop()
            diary.receive(task, "b")
        }
        meeting.meeting.settle()
        #expect(diary.lines == ["a:hello", "b!cancelled"] && diary.end?.failure == .cancelled)
        #expect(task.record.state == .completed && peer.close == [])
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func peerThatDisconnectsAfterItsCloseHasClosed(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform { diary.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines == ["a:hello"])
        #expect(diary.end?.isClean == true && diary.end?.code == .normalClosure && diary.end?.failure == nil)
        meeting.finish()
    }

    /// A message that is there in part only is none.
    @Test(arguments: TaskPlace.all)
    func wholeMessagesBeforeAResetAreReceivedBeforeTheFailure(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        peer.send(1, "one")
        peer.send(1, "two")
        peer.peer.send(Array(peer.encoded(1, Array("three".utf8)).dropLast()))
        #expect(meeting.run { task.record.messagesReceived == 2 })
        peer.peer.reset()
        #expect(meeting.run { diary.end != nil })
        meeting.perform { for name in ["a", "b", "c"] { diary.receive(task, name) } }
        #expect(diary.lines.count == 3 && diary.lines[..<2] == ["a:one", "b:two"])
        #expect(diary.lines.last?.hasPrefix("c!") == true && diary.end?.isClean == false)
        if case .connectionLost? = diary.end?.failure {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }
}
