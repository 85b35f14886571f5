import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("WebSocket tasks whose peers break rules, or use them to the limit, RFC 6455")
struct HostilePeerTests {
    private func pair(_ role: TaskRole) throws -> (WebSocketHarness, WebSocketTask, RawWebSocketPeer, WebSocketRecorder)
    {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        return (harness, task, peer, recorder)
    }

    private func expectViolation(
        _ code: CloseCode, _ harness: WebSocketHarness, _ peer: RawWebSocketPeer, _ recorder: WebSocketRecorder,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let hasEnded = harness.run(atMost: .seconds(2)) { recorder.end != nil && peer.close != nil }
        #expect(hasEnded, sourceLocation: sourceLocation)
        let bytes = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
        #expect(peer.frames.map(\.opcode) == [8] && peer.close == bytes, sourceLocation: sourceLocation)
        if case .protocolViolation(code.rawValue, _)? = recorder.end?.failure {
        } else {
            Issue.record("\(String(describing: recorder.end))", sourceLocation: sourceLocation)
        }
        #expect(recorder.end?.isClean == false, sourceLocation: sourceLocation)
    }

    /// §5.5.1, §7.4: half a code, codes that are never sent, codes without a meaning, a reason that is no text.
    @Test(
        arguments: TaskRole.allCases,
        [
            [0x03], [0x00, 0x00], [0x03, 0xE7], [0x03, 0xEC], [0x03, 0xED], [0x03, 0xEE], [0x03, 0xF7], [0x0B, 0xB7],
            [0x13, 0x88], [0x03, 0xE8, 0xC3],
        ] as [[UInt8]])
    func invalidCloseFrameFailsTheConnection(_ role: TaskRole, _ payload: [UInt8]) throws {
        let (harness, _, peer, recorder) = try self.pair(role)
        peer.send(8, payload)
        self.expectViolation(payload.count > 2 ? .invalidPayloadData : .protocolError, harness, peer, recorder)
        harness.finish()
    }

    /// §5.1: a client that does not mask, or a server that does.
    @Test(arguments: TaskRole.allCases)
    func frameOfTheWrongRoleFailsTheConnection(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        RawWebSocketPeer(peer.peer, isClient: role == .opened).send(1, "hello")
        self.expectViolation(.protocolError, harness, peer, recorder)
        #expect(task.record.messagesReceived == 0)
        harness.finish()
    }

    /// §5.5.1: nothing behind it is looked at, not even what breaks a rule.
    @Test(arguments: TaskRole.allCases)
    func bytesBehindACloseAreDiscarded(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        harness.perform { for name in ["a", "b"] { recorder.receive(task, name) } }
        peer.peer.send(
            peer.encoded(8, [0x03, 0xE8]) + peer.encoded(1, Array("late".utf8)) + peer.encoded(9, [1]) + [0xFF, 0xFF])
        #expect(harness.run(atMost: .seconds(1)) { peer.close == [0x03, 0xE8] })
        peer.send(1, "later")
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines == ["a!\(TaskFailure.closed)", "b!\(TaskFailure.closed)"])
        #expect(recorder.end?.isClean == true && task.record.messagesReceived == 0 && peer.frames.map(\.opcode) == [8])
        harness.finish()
    }

    /// §5.5.1: the peer may send until its own Close; nothing follows ours.
    @Test(arguments: TaskRole.allCases)
    func messagesBetweenTheTwoClosesAreReceivedAndPingsNotAnswered(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        harness.perform {
            for name in ["a", "b"] { recorder.receive(task, name) }
            task.close(.goingAway)
        }
        #expect(harness.run(atMost: .seconds(1)) { peer.close == [0x03, 0xE9] })
        peer.send(9, "ping")
        peer.send(1, "still")
        peer.send(8, [0x03, 0xE9])
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines == ["a:still", "b!\(TaskFailure.closed)"] && recorder.end?.isClean == true)
        #expect(peer.frames.map(\.opcode) == [8])
        harness.finish()
    }

    /// §5.4, §5.5.2: also between the fragments of a message.
    @Test(arguments: TaskRole.allCases)
    func everyPingIsAnsweredInOrder(_ role: TaskRole) throws {
        let (harness, task, peer, recorder) = try self.pair(role)
        harness.perform { recorder.receive(task, "a") }
        let payloads = (0..<40).map { [UInt8](repeating: UInt8($0), count: 3 * $0) }
        for (index, payload) in payloads.enumerated() {
            peer.send(9, payload)
            peer.send(index == 0 ? 2 : 0, [UInt8(index)], isFinal: index == payloads.count - 1)
            // A Pong that nothing asked for means nothing.
            peer.send(10, [1, 2, 3])
        }
        #expect(harness.run { peer.frames.count == payloads.count && recorder.lines.count == 1 })
        #expect(peer.frames.allSatisfy { $0.opcode == 10 && $0.isFinal && $0.isMasked == (role == .opened) })
        #expect(peer.frames.map(\.payload) == payloads)
        #expect(recorder.messages == [.data((0..<40).map { UInt8($0) })] && recorder.end == nil)
        harness.perform { task.reset() }
        harness.finish()
    }
}
