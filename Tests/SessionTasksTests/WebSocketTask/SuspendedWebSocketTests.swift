import ByteKernels
import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Suspended WebSocket tasks")
struct SuspendedWebSocketTests {
    @Test(arguments: TaskPlace.all)
    func suspendedTaskNeitherReadsNorSends(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let diary = WebSocketDiary()
        meeting.perform {
            task.suspendOnLoop()
            diary.receive(task, "r")
            diary.send(task, "s")
            diary.ping(task, "p")
        }
        peer.send(1, "hello")
        meeting.meeting.settle()
        #expect(diary.lines.isEmpty && peer.frames.isEmpty && task.record.state == .suspended)
        meeting.perform { task.resumeOnLoop() }
        #expect(meeting.run { diary.lines.contains("r:hello") && diary.lines.contains("s") && peer.frames.count == 2 })
        peer.send(10, peer.frames[1].payload)
        #expect(meeting.run { diary.lines.contains("p") && task.record.state == .running })
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test func queuedMessagesAreCounted() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(.opened)
        let diary = WebSocketDiary()
        var number: UInt64 = 0
        meeting.perform {
            task.suspendOnLoop()
            diary.send(task, "a", .data([1, 2, 3]))
            number = task.send(.string("größer")) { _ in }
            diary.ping(task, "p")
        }
        #expect(task.waitingBytes == 11 && task.waitingMessages == 3 && task.queuedBytes == 0)
        meeting.perform { task.withdrawSend(number) }
        #expect(task.waitingBytes == 3 && task.waitingMessages == 2)
        meeting.perform { task.resumeOnLoop() }
        #expect(meeting.run { peer.frames.count == 2 })
        #expect(task.waitingBytes == 0 && task.waitingMessages == 0)
        meeting.perform {
            task.suspendOnLoop()
            diary.send(task, "b", .data([1]))
            task.reset()
        }
        #expect(task.waitingBytes == 0)
        meeting.finish()
    }

    @Test func suspendedTaskDoesNotTimeOutItsPeer() throws {
        let meeting = try WebSocketMeeting(.simulation)
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try meeting.raw(.opened, options: options)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        #expect(meeting.run(atMost: .seconds(11)) { peer.frames.count == 1 })
        meeting.perform { task.suspendOnLoop() }
        #expect(!meeting.run(atMost: .seconds(100)) { diary.end != nil || peer.frames.count > 1 })
        meeting.perform { task.resumeOnLoop() }
        #expect(meeting.run(atMost: .seconds(11)) { peer.frames.count == 2 })
        #expect(diary.end == nil)
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test func suspendedHandshakeRestarts() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let peers = meeting.meeting.peers
        let task = meeting.client(to: peers.address)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.send(task, "s")
            task.resumeOnLoop()
        }
        #expect(meeting.run { peers.accepted.last?.received.isEmpty == false })
        meeting.perform { task.suspendOnLoop() }
        // Longer than the handshake may take.
        #expect(!meeting.run(atMost: .seconds(60)) { diary.end != nil })
        meeting.perform { task.resumeOnLoop() }
        #expect(
            meeting.run {
                peers.accepted.count == 2 && peers.accepted.last?.received.suffix(4) == Array("\r\n\r\n".utf8)[...]
            })
        let peer = try #require(peers.accepted.last)
        peer.send(RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value))
        #expect(meeting.run { diary.lines == ["s"] })
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test func limitChangedLaterAppliesToMessages() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(.opened)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            var options = task.options
            options.maximumMessageSize = 3
            task.set(options)
            diary.receive(task, "a")
            diary.receive(task, "b")
        }
        peer.send(1, "abc")
        peer.send(1, "abcd")
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines == ["a:abc", "b!\(TaskFailure.messageTooLong(limit: 3))"])
        meeting.finish()
    }

    @Test(arguments: [0, -1]) func limitOfNothingRefusesMessagesAndReadsOn(_ limit: Int) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(.opened)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            var options = task.options
            options.maximumMessageSize = limit
            task.set(options)
        }
        peer.send(9, "ping")
        #expect(meeting.run(atMost: .seconds(1)) { peer.frames.contains { $0.opcode == 10 } })
        peer.send(1, "")
        meeting.perform { diary.receive(task, "a") }
        #expect(meeting.run(atMost: .seconds(1)) { diary.lines == ["a:"] })
        meeting.perform { diary.receive(task, "b") }
        peer.send(1, "x")
        #expect(meeting.run(atMost: .seconds(1)) { diary.lines.count == 2 })
        #expect(diary.lines.last == "b!\(TaskFailure.messageTooLong(limit: limit))")
        meeting.finish()
    }

    @Test func suspendedTaskReportsTheCloseBeforeTheEnd() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(.opened)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        var told: [String] = []
        meeting.perform { task.whenPeerClosed { told.append("\($0?.rawValue ?? 0) \($1.count) \(diary.end == nil)") } }
        peer.send(8, [0x0F, 0xA1, 0x61])
        #expect(meeting.run { told == ["4001 1 true"] })
        peer.peer.finish()
        #expect(meeting.run { diary.end?.isClean == true })
        meeting.finish()
    }

    /// The peer's answer would not be read, and the peer be taken for one that does not answer.
    @Test(arguments: TaskRole.allCases, [true, false])
    func closingEndsASuspension(_ role: TaskRole, _ holdsMessage: Bool) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            task.suspendOnLoop()
            if holdsMessage { diary.send(task, "held") }
        }
        meeting.meeting.settle()
        #expect(peer.frames.isEmpty && task.record.state == .suspended)
        meeting.perform { task.close(.goingAway) }
        #expect(meeting.run(atMost: .seconds(1)) { peer.close == [0x03, 0xE9] })
        #expect(peer.frames.map(\.opcode) == (holdsMessage ? [1, 8] : [8]) && task.record.state == .running)
        peer.send(8, [0x03, 0xE9])
        peer.peer.finish()
        #expect(meeting.run(atMost: .seconds(1)) { diary.end != nil })
        #expect(diary.end?.isClean == true && diary.lines == (holdsMessage ? ["held"] : []))
        meeting.finish()
    }
}
