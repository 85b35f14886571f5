import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Cancelling a WebSocket task and its operations")
struct CancellingTests {
    @Test(arguments: TaskRole.allCases)
    func cancellingSendsACloseFrameWithoutCode(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.receive(task, "waiting")
            task.cancelOnLoop()
            diary.receive(task, "later")
            diary.ping(task, "ping")
        }
        #expect(diary.lines == ["waiting!cancelled", "later!cancelled", "ping!cancelled"])
        #expect(diary.end?.failure == .cancelled && task.closeCode == .noStatusReceived)
        #expect(meeting.run { peer.close == [] })
        meeting.finish()
    }

    /// A task cancelled right after `close` still sends its Close frame.
    @Test(arguments: TaskRole.allCases)
    func cancelAfterACloseStillSendsTheCloseFrame(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.send(task, "last words")
            task.close(.goingAway, reason: Array("bye".utf8))
            task.cancelOnLoop()
        }
        #expect(diary.end?.failure == .cancelled)
        #expect(meeting.run { peer.close == [0x03, 0xE9] + Array("bye".utf8) })
        #expect(peer.frames.first?.payload == Array("last words".utf8))
        peer.peer.finish()
        meeting.meeting.settle()
        #expect(peer.peer.failure == nil)
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func withdrawnPingIsCancelled(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        meeting.perform {
            diary.ping(task, "first")
            let number = task.sendPing([]) { result in
                if case .failure(.cancelled) = result { diary.ping(task, "third") }
            }
            task.withdrawSend(number)
            task.withdrawSend(number)
        }
        #expect(meeting.run { peer.frames.count == 3 })
        #expect(diary.lines.isEmpty)
        // Its Pong is still accepted.
        peer.send(10, peer.frames[1].payload)
        #expect(meeting.run { diary.lines == ["first"] })
        peer.send(10, peer.frames[2].payload)
        #expect(meeting.run { diary.lines == ["first", "third"] })
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func pingsUnderWayAreStillAnsweredWhileClosing(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        meeting.perform {
            diary.ping(task, "before")
            diary.ping(task, "unanswered")
            task.close(.normalClosure)
            diary.ping(task, "too late")
        }
        #expect(diary.lines == ["too late!\(TaskFailure.closed)"])
        #expect(meeting.run { peer.close != nil })
        peer.send(10, peer.frames[0].payload)
        #expect(meeting.run { diary.lines.last == "before" })
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(meeting.run { diary.lines.last == "unanswered!\(TaskFailure.closed)" })
        meeting.finish()
    }

    /// The code and reason of the first Close are those of the connection, whatever the other side answered.
    @Test(arguments: TaskRole.allCases)
    func codeAndReasonAreThoseThatWerePassed(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform { task.close(CloseCode(rawValue: 4321), reason: Array("enough".utf8)) }
        #expect(meeting.run { peer.close != nil })
        #expect(task.closeCode?.rawValue == 4321 && task.closeReason == Array("enough".utf8))
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(task.closeCode?.rawValue == 4321 && task.closeReason == Array("enough".utf8))
        #expect(diary.end?.code == .normalClosure && diary.end?.reason == [])
        meeting.finish()
    }
}
