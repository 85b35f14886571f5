import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

/// An end takes effect after the messages before it: the receiver of such a message may still answer it.
@Suite("A Close or a violation after a message, RFC 6455 §5.5.1")
struct EndBehindMessageTests {
    private func pair(_ role: TaskRole) throws -> (WebSocketHarness, WebSocketTask, RawWebSocketPeer, WebSocketRecorder)
    {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        return (harness, task, peer, recorder)
    }

    @Test(arguments: TaskRole.allCases)
    func deliveredMessageIsAnsweredBeforeTheCloseAfterIt(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        harness.perform { recorder.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x0F, 0xA0] + Array("enough".utf8))
        #expect(harness.run { recorder.lines == ["a:hello"] && task.closeCode != nil })
        // Readable at once, although a message is still unanswered.
        #expect(task.closeCode?.rawValue == 4000 && task.closeReason == Array("enough".utf8))
        #expect(peer.frames.isEmpty)
        harness.perform { recorder.send(task, "answer") }
        #expect(harness.run { recorder.lines.last == "answer" })
        harness.perform { recorder.receive(task, "b") }
        #expect(harness.run { peer.close != nil })
        #expect(peer.frames.first?.payload == Array("answer".utf8) && peer.close == [0x0F, 0xA0])
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines.last == "b!\(TaskFailure.closed)")
        #expect(recorder.end?.isClean == true && recorder.end?.code?.rawValue == 4000)
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func everyUnreadMessageIsAnsweredBeforeTheViolationAfterIt(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        for text in ["one", "two", "three"] { peer.send(1, text) }
        peer.send(3, "reserved")
        peer.send(9, "never looked at")
        harness.base.settle()
        for text in ["one", "two", "three"] {
            harness.perform {
                recorder.receive(task)
                recorder.send(task, text)
            }
        }
        #expect(!harness.run(atMost: .milliseconds(900)) { recorder.end != nil })
        harness.perform { recorder.receive(task) }
        #expect(harness.run(atMost: .milliseconds(90)) { recorder.end != nil && peer.close != nil })
        #expect(peer.frames.map(\.opcode) == [1, 1, 1, 8] && peer.close?.prefix(2) == [0x03, 0xEA])
        if case .protocolViolation(1002, _)? = recorder.end?.failure {} else { Issue.record("\(recorder.lines)") }
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func unreadMessageDelaysTheEndForABoundedTime(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        harness.perform { recorder.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        #expect(harness.run { recorder.lines == ["a:hello"] })
        #expect(!harness.run(atMost: .milliseconds(900)) { peer.close != nil })
        #expect(harness.run(atMost: .milliseconds(200)) { peer.close == [0x03, 0xE8] })
        peer.peer.finish()
        #expect(harness.run { recorder.end?.isClean == true })
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func ownCloseMeetsAHeldClose(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        harness.perform { recorder.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        #expect(harness.run { task.closeCode != nil })
        harness.perform { task.close(.goingAway) }
        #expect(harness.run { peer.close == [0x03, 0xE9] })
        peer.peer.finish()
        #expect(harness.run { recorder.end?.isClean == true })
        #expect(recorder.end?.code == .normalClosure)
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func cancelDropsUnreadMessages(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        harness.perform { recorder.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        #expect(harness.run { task.closeCode != nil })
        harness.perform {
            task.cancelOnLoop()
            recorder.receive(task, "b")
        }
        harness.base.settle()
        #expect(recorder.lines == ["a:hello", "b!cancelled"] && recorder.end?.failure == .cancelled)
        #expect(task.record.state == .completed && peer.close == [])
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func peerThatDisconnectsAfterItsCloseHasClosed(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform { recorder.receive(task, "a") }
        peer.send(1, "hello")
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines == ["a:hello"])
        #expect(recorder.end?.isClean == true && recorder.end?.code == .normalClosure && recorder.end?.failure == nil)
        harness.finish()
    }

    /// A message that is there in part only is none.
    @Test(arguments: TaskVariant.all)
    func wholeMessagesBeforeAResetAreReceivedBeforeTheFailure(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        peer.send(1, "one")
        peer.send(1, "two")
        peer.peer.send(Array(peer.encoded(1, Array("three".utf8)).dropLast()))
        #expect(harness.run { task.record.messagesReceived == 2 })
        peer.peer.reset()
        #expect(harness.run { recorder.end != nil })
        harness.perform { for name in ["a", "b", "c"] { recorder.receive(task, name) } }
        #expect(recorder.lines.count == 3 && recorder.lines[..<2] == ["a:one", "b:two"])
        #expect(recorder.lines.last?.hasPrefix("c!") == true && recorder.end?.isClean == false)
        if case .connectionLost? = recorder.end?.failure {} else { Issue.record("\(String(describing: recorder.end))") }
        harness.finish()
    }
}
