import ByteKernels
import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Suspended WebSocket tasks")
struct SuspendedWebSocketTests {
    @Test(arguments: TaskVariant.all)
    func suspendedTaskNeitherReadsNorSends(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let recorder = WebSocketRecorder()
        harness.perform {
            task.suspendOnLoop()
            recorder.receive(task, "r")
            recorder.send(task, "s")
            recorder.ping(task, "p")
        }
        peer.send(1, "hello")
        harness.base.settle()
        #expect(recorder.lines.isEmpty && peer.frames.isEmpty && task.record.state == .suspended)
        harness.perform { task.resumeOnLoop() }
        #expect(
            harness.run { recorder.lines.contains("r:hello") && recorder.lines.contains("s") && peer.frames.count == 2 }
        )
        peer.send(10, peer.frames[1].payload)
        #expect(harness.run { recorder.lines.contains("p") && task.record.state == .running })
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test func queuedMessagesAreCounted() throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(.opened)
        let recorder = WebSocketRecorder()
        var number: UInt64 = 0
        harness.perform {
            task.suspendOnLoop()
            recorder.send(task, "a", .data([1, 2, 3]))
            number = task.send(.string("größer")) { _ in }
            recorder.ping(task, "p")
        }
        #expect(task.waitingBytes == 11 && task.waitingMessages == 3 && task.queuedBytes == 0)
        harness.perform { task.withdrawSend(number) }
        #expect(task.waitingBytes == 3 && task.waitingMessages == 2)
        harness.perform { task.resumeOnLoop() }
        #expect(harness.run { peer.frames.count == 2 })
        #expect(task.waitingBytes == 0 && task.waitingMessages == 0)
        harness.perform {
            task.suspendOnLoop()
            recorder.send(task, "b", .data([1]))
            task.reset()
        }
        #expect(task.waitingBytes == 0)
        harness.finish()
    }

    @Test func suspendedTaskDoesNotTimeOutItsPeer() throws {
        let harness = try WebSocketHarness(.simulation)
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try harness.raw(.opened, options: options)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        #expect(harness.run(atMost: .seconds(11)) { peer.frames.count == 1 })
        harness.perform { task.suspendOnLoop() }
        #expect(!harness.run(atMost: .seconds(100)) { recorder.end != nil || peer.frames.count > 1 })
        harness.perform { task.resumeOnLoop() }
        #expect(harness.run(atMost: .seconds(11)) { peer.frames.count == 2 })
        #expect(recorder.end == nil)
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test func suspendedHandshakeRestarts() throws {
        let harness = try WebSocketHarness(.simulation)
        let peers = harness.base.peers
        let task = harness.client(to: peers.address)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.send(task, "s")
            task.resumeOnLoop()
        }
        #expect(harness.run { peers.accepted.last?.received.isEmpty == false })
        harness.perform { task.suspendOnLoop() }
        // Longer than the handshake may take.
        #expect(!harness.run(atMost: .seconds(60)) { recorder.end != nil })
        harness.perform { task.resumeOnLoop() }
        #expect(
            harness.run {
                peers.accepted.count == 2 && peers.accepted.last?.received.suffix(4) == Array("\r\n\r\n".utf8)[...]
            })
        let peer = try #require(peers.accepted.last)
        peer.send(RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value))
        #expect(harness.run { recorder.lines == ["s"] })
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test func limitChangedLaterAppliesToMessages() throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(.opened)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            var options = task.options
            options.maximumMessageSize = 3
            task.set(options)
            recorder.receive(task, "a")
            recorder.receive(task, "b")
        }
        peer.send(1, "abc")
        peer.send(1, "abcd")
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines == ["a:abc", "b!\(TaskFailure.messageTooLong(limit: 3))"])
        harness.finish()
    }

    @Test(arguments: [0, -1]) func limitOfNothingRefusesMessagesAndReadsOn(_ limit: Int) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(.opened)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            var options = task.options
            options.maximumMessageSize = limit
            task.set(options)
        }
        peer.send(9, "ping")
        #expect(harness.run(atMost: .seconds(1)) { peer.frames.contains { $0.opcode == 10 } })
        peer.send(1, "")
        harness.perform { recorder.receive(task, "a") }
        #expect(harness.run(atMost: .seconds(1)) { recorder.lines == ["a:"] })
        harness.perform { recorder.receive(task, "b") }
        peer.send(1, "x")
        #expect(harness.run(atMost: .seconds(1)) { recorder.lines.count == 2 })
        #expect(recorder.lines.last == "b!\(TaskFailure.messageTooLong(limit: limit))")
        harness.finish()
    }

    @Test func suspendedTaskReportsTheCloseBeforeTheEnd() throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(.opened)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        var told: [String] = []
        harness.perform {
            task.whenPeerClosed { told.append("\($0?.rawValue ?? 0) \($1.count) \(recorder.end == nil)") }
        }
        peer.send(8, [0x0F, 0xA1, 0x61])
        #expect(harness.run { told == ["4001 1 true"] })
        peer.peer.finish()
        #expect(harness.run { recorder.end?.isClean == true })
        harness.finish()
    }

    /// The peer's answer would not be read, and the peer be taken for one that does not answer.
    @Test(arguments: TaskRole.allCases, [true, false])
    func closingEndsASuspension(_ role: TaskRole, _ holdsMessage: Bool) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            task.suspendOnLoop()
            if holdsMessage { recorder.send(task, "held") }
        }
        harness.base.settle()
        #expect(peer.frames.isEmpty && task.record.state == .suspended)
        harness.perform { task.close(.goingAway) }
        #expect(harness.run(atMost: .seconds(1)) { peer.close == [0x03, 0xE9] })
        #expect(peer.frames.map(\.opcode) == (holdsMessage ? [1, 8] : [8]) && task.record.state == .running)
        peer.send(8, [0x03, 0xE9])
        peer.peer.finish()
        #expect(harness.run(atMost: .seconds(1)) { recorder.end != nil })
        #expect(recorder.end?.isClean == true && recorder.lines == (holdsMessage ? ["held"] : []))
        harness.finish()
    }
}
