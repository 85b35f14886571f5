import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("A WebSocket task in both roles, RFC 6455")
struct WebSocketTaskTests {
    @Test(arguments: TransportTestbed.Kind.allCases)
    func operationsBeforeTheHandshakeRunInOrder(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        let client = meeting.client()
        let (asked, heard) = (WebSocketDiary(), WebSocketDiary())
        meeting.perform {
            asked.send(client, "one")
            asked.receive(client)
            asked.send(client, "two", .data([1, 2, 3]))
            asked.ping(client, "pong")
            asked.send(client, "three")
            client.resumeOnLoop()
        }
        #expect(meeting.run { meeting.accepted.count == 1 })
        let server = meeting.accepted[0]
        meeting.perform {
            for _ in 0..<3 { heard.receive(server) }
            heard.send(server, "back")
        }
        #expect(meeting.run { asked.lines.count == 5 && heard.lines.count == 4 })
        #expect(asked.lines.filter { $0 != "received:back" && $0 != "pong" } == ["one", "two", "three"])
        #expect(heard.messages == [.string("one"), .data([1, 2, 3]), .string("three")])
        #expect(client.subprotocol == "chat" && server.subprotocol == "chat")
        #expect(client.response?.status == 101 && server.response == nil)
        meeting.perform {
            heard.receive(server)
            client.cancelOnLoop()
        }
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func sendCompletesAndALargeMessageArrivesWhole(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        meeting.options.maximumMessageSize = 4 << 20
        var options = WebSocketOptions()
        options.maximumMessageSize = 4 << 20
        let (client, server) = try meeting.pair(options: options)
        let (left, right) = (WebSocketDiary(), WebSocketDiary())
        let large = WebSocketTask.Message.data(.pattern(3_000_000))
        // Both send more than all buffers hold at the same time: neither may stop reading because of its own output.
        meeting.perform {
            left.receiveAll(client)
            right.receiveAll(server)
            for name in ["a", "b"] {
                left.send(client, name, large)
                right.send(server, name, large)
            }
        }
        #expect(meeting.run { left.messages.count == 2 && right.messages.count == 2 })
        #expect(left.messages == [large, large] && right.messages == [large, large])
        #expect(meeting.run { left.lines == ["a", "b"] && right.lines == ["a", "b"] })
        meeting.perform { client.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func fragmentsAreJoinedAndPingsBetweenThemAnswered(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let diary = WebSocketDiary()
        peer.send(1, Array("Hel".utf8), isFinal: false)
        peer.send(9, "are you there")
        peer.send(0, "lo")
        peer.send(2, [9, 8])
        meeting.perform { diary.receive(task, "first") }
        #expect(meeting.run { diary.lines == ["first:Hello"] && peer.frames.count == 1 })
        meeting.perform { diary.receive(task, "second") }
        #expect(meeting.run { diary.lines.last == "second:2 bytes" })
        let pong = RawWebSocketPeer.Frame(
            opcode: 10, isFinal: true, isMasked: place.role == .opened, payload: Array("are you there".utf8))
        #expect(peer.frames == [pong])
        #expect(task.record.messagesReceived == 2 && task.record.bytesReceived == 7)
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func pongsCompletePingsInOrder(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let diary = WebSocketDiary()
        meeting.perform { for name in ["a", "b", "c"] { diary.ping(task, name) } }
        #expect(meeting.run { peer.frames.count == 3 })
        let pings = peer.frames
        peer.send(10, "unasked")
        meeting.meeting.settle()
        #expect(diary.lines.isEmpty)
        // The most recent ping alone may be answered (§5.5.3).
        peer.send(10, pings[1].payload)
        #expect(meeting.run { diary.lines == ["a", "b"] })
        peer.send(10, pings[2].payload)
        #expect(meeting.run { diary.lines == ["a", "b", "c"] })
        meeting.perform {
            diary.ping(task, "d")
            task.reset()
        }
        #expect(diary.lines.last == "d!cancelled")
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases, [true, false])
    func bothLearnCodeAndReason(_ kind: TransportTestbed.Kind, _ clientCloses: Bool) throws {
        let meeting = try WebSocketMeeting(kind)
        let (client, server) = try meeting.pair()
        let (closing, closed) = clientCloses ? (client, server) : (server, client)
        let (first, second) = (WebSocketDiary(), WebSocketDiary())
        first.watchEnd(closing)
        second.watchEnd(closed)
        meeting.perform {
            first.send(closing, "last words")
            second.receive(closed, "a")
            second.receive(closed, "b")
            first.receive(closing, "c")
            closing.close(CloseCode(rawValue: 4321), reason: Array("enough".utf8))
            first.send(closing, "too late")
        }
        #expect(meeting.run { first.end != nil && second.end != nil })
        #expect(second.lines == ["a:last words", "b!\(TaskFailure.closed)"])
        #expect(first.lines.contains("last words") && first.lines.contains("too late!\(TaskFailure.closed)"))
        #expect(first.lines.contains("c!\(TaskFailure.closed)"))
        for task in [client, server] {
            #expect(task.closeCode?.rawValue == 4321)
            #expect(task.record.state == .completed && task.record.read { $0.failure } == nil)
        }
        #expect(closed.closeReason == Array("enough".utf8))
        #expect(first.end?.isClean == true && second.end?.isClean == true)
        #expect(second.end?.code?.rawValue == 4321 && second.end?.reason == Array("enough".utf8))
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func bothMayCloseAtOnce(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        let (client, server) = try meeting.pair()
        let (left, right) = (WebSocketDiary(), WebSocketDiary())
        left.watchEnd(client)
        right.watchEnd(server)
        meeting.perform {
            client.close(.normalClosure, reason: [])
            server.close(.goingAway, reason: [])
        }
        #expect(meeting.run { left.end != nil && right.end != nil })
        #expect(left.end?.isClean == true && right.end?.isClean == true)
        #expect(left.end?.code == .goingAway && right.end?.code == .normalClosure)
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func sendsAfterAQueuedCloseFail(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        peer.peer.isReading = false
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.send(task, "a", .data(.pattern(400_000)))
            diary.send(task, "b", .data(.pattern(400_000)))
            task.close(.normalClosure)
            diary.send(task, "c")
            diary.ping(task, "d")
        }
        peer.peer.isReading = true
        #expect(meeting.run { peer.close != nil })
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines == ["a", "b", "c!\(TaskFailure.closed)", "d!\(TaskFailure.closed)"])
        #expect(diary.end?.isClean == true)
        meeting.finish()
    }

    /// The peer may never read again.
    @Test(arguments: TaskRole.allCases)
    func closeBehindMessagesThatNobodyReadsEndsTheTask(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        peer.peer.isReading = false
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            for _ in 0..<4 { diary.send(task, "a", .data(.pattern(400_000))) }
            task.close(.goingAway)
        }
        #expect(meeting.run(atMost: .seconds(20)) { diary.end != nil })
        #expect(diary.end?.failure == .peerUnresponsive)
        meeting.finish()
    }

    /// Whatever is asked of the task meanwhile.
    @Test(arguments: TaskRole.allCases, ["a message", "another Close", "a suspension"])
    func queuedCloseIsGivenUpInTime(_ role: TaskRole, _ request: String) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        peer.peer.isReading = false
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            for _ in 0..<4 { diary.send(task, "a", .data(.pattern(400_000))) }
            task.close(.goingAway)
        }
        for _ in 0..<5 where diary.end == nil {
            meeting.perform {
                switch request {
                case "a message": diary.send(task, "late")
                case "another Close": task.close(.normalClosure)
                default: task.suspendOnLoop()
                }
            }
            _ = meeting.run(atMost: .seconds(3)) { diary.end != nil }
        }
        #expect(diary.end?.failure == .peerUnresponsive)
        meeting.finish()
    }

    /// Otherwise two ends that both send much would wait for each other.
    @Test(arguments: TaskRole.allCases)
    func pingsAmongMessagesThatNobodyReadsDoNotStopReading(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        peer.peer.isReading = false
        let diary = WebSocketDiary()
        meeting.perform {
            for _ in 0..<4 { diary.send(task, "a", .data(.pattern(400_000))) }
            diary.receive(task, "b")
        }
        #expect(meeting.run(atMost: .seconds(1)) { task.queuedBytes > WebSocketTask.outputWatermark })
        for _ in 0..<10 { peer.send(9, "ping") }
        peer.send(1, "hello")
        #expect(meeting.run(atMost: .seconds(1)) { diary.lines == ["b:hello"] })
        peer.peer.isReading = true
        #expect(meeting.run { peer.frames.count { $0.opcode == 10 } == 10 && diary.lines.count == 5 })
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func receiversFailAtTheCloseFrameNotAtTheEnd(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        meeting.perform { diary.receive(task) }
        peer.send(8, [0x03, 0xE8])
        #expect(meeting.run(atMost: .seconds(1)) { diary.lines == ["received!\(TaskFailure.closed)"] })
        #expect(meeting.run { peer.close == [0x03, 0xE8] })
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func anEndWithoutCloseFrameIsAbnormal(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.receive(task, "a")
            diary.receive(task, "b")
        }
        peer.send(1, "last")
        peer.peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines.first == "a:last" && diary.lines.last?.hasPrefix("b!") == true)
        #expect(diary.end?.isClean == false && task.closeCode == nil)
        if case .connectionLost? = diary.end?.failure {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func aMessageBeyondTheLimitEndsWith1009(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        var options = WebSocketOptions()
        options.maximumMessageSize = 100
        let (task, peer) = try meeting.raw(place.role, options: options)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.receive(task, "fits")
            diary.receive(task, "long")
        }
        peer.send(2, .pattern(100))
        peer.send(2, .pattern(60), isFinal: false)
        peer.send(0, .pattern(41))
        #expect(meeting.run { diary.end != nil && peer.close != nil })
        #expect(diary.lines == ["fits:100 bytes", "long!\(TaskFailure.messageTooLong(limit: 100))"])
        #expect(peer.close?.prefix(2) == [0x03, 0xF1])
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func aBrokenRuleEndsWithItsCode(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        peer.send(1, [0x48, 0xC0, 0x20])
        #expect(meeting.run { diary.end != nil && peer.close != nil })
        #expect(peer.close?.prefix(2) == [0x03, 0xEF])
        if case .protocolViolation(1007, _)? = diary.end?.failure {
        } else {
            Issue.record("\(String(describing: diary.end))")
        }
        #expect(diary.end?.isClean == false && task.closeCode == .invalidPayloadData)
        meeting.finish()
    }

    @Test(arguments: TaskPlace.all)
    func unreadMessagesStopTheReading(_ place: TaskPlace) throws {
        let meeting = try WebSocketMeeting(place.kind)
        let (task, peer) = try meeting.raw(place.role)
        let message = [UInt8].pattern(64_000)
        // More than the kernel's buffers take.
        let count = place.kind == .sockets ? 300 : 60
        let frame = peer.encoded(2, message)
        peer.peer.send((0..<count).flatMap { _ in frame })
        meeting.meeting.settle()
        #expect(task.record.bytesReceived <= 1 << 20 + 2 * 64_000)
        #expect(peer.peer.unsentBytes > 0)
        let diary = WebSocketDiary()
        meeting.perform { diary.receiveAll(task) }
        #expect(meeting.run { diary.messages.count == count })
        // A debug build compares slowly: not all of them.
        for index in [0, count / 2, count - 1] { #expect(diary.messages[index] == .data(message)) }
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func keepAliveDetectsADeadPeer(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try meeting.raw(role, options: options)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        #expect(meeting.run(atMost: .seconds(11)) { peer.frames.count == 1 })
        peer.send(10, peer.frames[0].payload)
        #expect(meeting.run(atMost: .seconds(11)) { peer.frames.count == 2 })
        #expect(diary.end == nil)
        #expect(!meeting.run(atMost: .milliseconds(3900)) { diary.end != nil })
        #expect(meeting.run(atMost: .milliseconds(200)) { diary.end != nil })
        #expect(diary.end?.failure == .peerUnresponsive)
        #expect(meeting.run { peer.peer.failure == .reset })
        meeting.finish()
    }

    /// A task that sends more than the kernels of both sides hold, and pings, to a peer that reads on demand.
    private func sending(_ count: Int, _ role: TaskRole, in meeting: WebSocketMeeting) throws -> (
        RawWebSocketPeer, WebSocketDiary
    ) {
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try meeting.raw(role, options: options)
        peer.peer.isReading = false
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform { diary.send(task, "sent", .data(.pattern(count))) }
        return (peer, diary)
    }

    private func read(_ count: Int, _ peer: RawWebSocketPeer, in meeting: WebSocketMeeting) {
        peer.peer.readLimit = count
        let before = peer.peer.received.count
        peer.peer.isReading = true
        #expect(meeting.run { peer.peer.received.count > before })
        peer.peer.isReading = false
    }

    @Test(arguments: TaskRole.allCases)
    func aPeerThatReadsSlowlyIsNotTakenForADeadOne(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (peer, diary) = try self.sending(1_000_000, role, in: meeting)
        // What its kernel holds takes it longer than the pong timeout; so it never gets to a Ping in time.
        while peer.peer.received.count < 1_000_000 {
            self.read(16_000, peer, in: meeting)
            #expect(!meeting.run(atMost: .seconds(1)) { diary.end != nil })
            guard diary.end == nil else { return }
        }
        peer.peer.isReading = true
        #expect(meeting.run { peer.frames.count > 1 })
        #expect(peer.frames[0].payload == .pattern(1_000_000) && peer.frames[1].opcode == 9)
        peer.send(10, peer.frames[1].payload)
        #expect(!meeting.run(atMost: .seconds(9)) { diary.end != nil })
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func aPeerThatStopsReadingIsNoticedInTime(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (peer, diary) = try self.sending(1_000_000, role, in: meeting)
        for _ in 0..<30 {
            self.read(16_000, peer, in: meeting)
            #expect(!meeting.run(atMost: .seconds(1)) { diary.end != nil })
        }
        // The last sign of life is seen within half the pong timeout, and four times the timeout count from then: what
        // its kernel still holds for it may take it so long.
        #expect(!meeting.run(atMost: .milliseconds(14_900)) { diary.end != nil })
        #expect(meeting.run(atMost: .milliseconds(2_300)) { diary.end != nil })
        #expect(diary.end?.failure == .peerUnresponsive)
        meeting.finish()
    }

    /// The kernel of a hanging program acknowledges data until its buffer is full.
    @Test(arguments: TaskRole.allCases)
    func peerThatStopsReadingIsDetectedByPings(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try meeting.raw(role, options: options)
        peer.peer.isReading = false
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        for _ in 0..<13 {
            meeting.perform { diary.send(task, "tick") }
            #expect(!meeting.run(atMost: .seconds(1)) { diary.end != nil })
        }
        #expect(meeting.run(atMost: .milliseconds(1_100)) { diary.end != nil })
        #expect(diary.end?.failure == .peerUnresponsive)
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func aPeerThatDoesNotAnswerTheCloseIsCutOff(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform { task.close(.normalClosure) }
        #expect(!meeting.run(atMost: .milliseconds(4900)) { diary.end != nil })
        #expect(meeting.run(atMost: .milliseconds(200)) { diary.end != nil })
        #expect(diary.end?.isClean == false && diary.end?.failure == .peerUnresponsive)
        #expect(peer.close == [0x03, 0xE8])
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func theTimeToAnswerACloseBeginsWhenItHasLeft(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        peer.peer.readLimit = 40_000
        peer.peer.isReading = false
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        let message = [UInt8].pattern(900_000)
        meeting.perform {
            diary.send(task, "much", .data(message))
            task.close(.normalClosure)
        }
        // Reads for a moment every four seconds: slow, but there.
        for _ in 0..<20 where task.queuedBytes > 0 {
            _ = meeting.meeting.ground.network?.run(for: .seconds(4))
            let before = peer.peer.received.count
            peer.peer.isReading = true
            _ = meeting.run(atMost: .milliseconds(100)) { peer.peer.received.count > before + 100_000 }
            peer.peer.isReading = false
        }
        #expect(task.queuedBytes == 0 && meeting.meeting.loop.now.nanoseconds > 8_000_000_000)
        peer.peer.isReading = true
        #expect(
            meeting.run { peer.close == [0x03, 0xE8] }, "\(String(describing: diary.end)), \(peer.peer.received.count)")
        #expect(peer.frames.first?.payload.count == message.count)
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.end?.isClean == true && diary.lines == ["much"])
        meeting.finish()
    }

    @Test(arguments: [DeflatePolicy(), DeflatePolicy(ownContextTakeover: false, peerContextTakeover: false)])
    func messagesAreCompressedIfNegotiated(_ policy: DeflatePolicy) throws {
        let meeting = try WebSocketMeeting(.simulation)
        meeting.deflate = policy
        let (client, server) = try meeting.pair(deflate: policy)
        let (left, right) = (WebSocketDiary(), WebSocketDiary())
        let texts = (0..<20).map { String(repeating: "all work and no play \($0) ", count: 200) }
        meeting.perform {
            left.receiveAll(client)
            right.receiveAll(server)
            for text in texts {
                left.send(client, text)
                right.send(server, text)
            }
        }
        #expect(meeting.run { left.messages.count == 20 && right.messages.count == 20 })
        #expect(left.messages == texts.map { .string($0) } && right.messages == texts.map { .string($0) })
        let plain = texts.reduce(0) { $0 + $1.utf8.count }
        #expect(client.writtenBytes < plain / 4)
        meeting.perform { client.cancelOnLoop() }
        meeting.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func cancelSendsACloseFrameAndFailsPendingOperations(_ role: TaskRole) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let (task, peer) = try meeting.raw(role)
        let diary = WebSocketDiary()
        diary.watchEnd(task)
        meeting.perform {
            diary.receive(task, "r")
            diary.ping(task, "p")
            task.cancelOnLoop()
            diary.receive(task, "s")
            diary.send(task, "t")
        }
        #expect(diary.lines.sorted() == ["p!cancelled", "r!cancelled", "s!cancelled", "t!cancelled"])
        #expect(diary.end?.failure == .cancelled)
        #expect(meeting.run { peer.close != nil })
        meeting.finish()
    }
}
