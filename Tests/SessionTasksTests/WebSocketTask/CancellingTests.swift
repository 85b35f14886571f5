import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Cancelling a WebSocket task and its operations")
struct CancellingTests {
    @Test(arguments: TaskRole.allCases)
    func cancellingSendsACloseFrameWithoutCode(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.receive(task, "waiting")
            task.cancelOnLoop()
            recorder.receive(task, "later")
            recorder.ping(task, "ping")
        }
        #expect(recorder.lines == ["waiting!cancelled", "later!cancelled", "ping!cancelled"])
        #expect(recorder.end?.failure == .cancelled && task.closeCode == .noStatusReceived)
        #expect(harness.run { peer.close == [] })
        harness.finish()
    }

    /// A task cancelled right after `close` still sends its Close frame.
    @Test(arguments: TaskRole.allCases)
    func cancelAfterACloseStillSendsTheCloseFrame(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.send(task, "last words")
            task.close(.goingAway, reason: Array("bye".utf8))
            task.cancelOnLoop()
        }
        #expect(recorder.end?.failure == .cancelled)
        #expect(harness.run { peer.close == [0x03, 0xE9] + Array("bye".utf8) })
        #expect(peer.frames.first?.payload == Array("last words".utf8))
        peer.peer.finish()
        harness.base.settle()
        #expect(peer.peer.failure == nil)
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func withdrawnPingIsCancelled(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        harness.perform {
            recorder.ping(task, "first")
            let number = task.sendPing([]) { result in
                if case .failure(.cancelled) = result { recorder.ping(task, "third") }
            }
            task.withdrawSend(number)
            task.withdrawSend(number)
        }
        #expect(harness.run { peer.frames.count == 3 })
        #expect(recorder.lines.isEmpty)
        // Its Pong is still accepted.
        peer.send(10, peer.frames[1].payload)
        #expect(harness.run { recorder.lines == ["first"] })
        peer.send(10, peer.frames[2].payload)
        #expect(harness.run { recorder.lines == ["first", "third"] })
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func pingsUnderWayAreStillAnsweredWhileClosing(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        harness.perform {
            recorder.ping(task, "before")
            recorder.ping(task, "unanswered")
            task.close(.normalClosure)
            recorder.ping(task, "too late")
        }
        #expect(recorder.lines == ["too late!\(TaskFailure.closed)"])
        #expect(harness.run { peer.close != nil })
        peer.send(10, peer.frames[0].payload)
        #expect(harness.run { recorder.lines.last == "before" })
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(harness.run { recorder.lines.last == "unanswered!\(TaskFailure.closed)" })
        harness.finish()
    }

    /// The code and reason of the first Close are those of the connection, whatever the other side answered.
    @Test(arguments: TaskRole.allCases)
    func codeAndReasonAreThoseThatWerePassed(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform { task.close(CloseCode(rawValue: 4321), reason: Array("enough".utf8)) }
        #expect(harness.run { peer.close != nil })
        #expect(task.closeCode?.rawValue == 4321 && task.closeReason == Array("enough".utf8))
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(task.closeCode?.rawValue == 4321 && task.closeReason == Array("enough".utf8))
        #expect(recorder.end?.code == .normalClosure && recorder.end?.reason == [])
        harness.finish()
    }
}
