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
        let harness = try WebSocketHarness(kind)
        let client = harness.client()
        let (asked, heard) = (WebSocketRecorder(), WebSocketRecorder())
        harness.perform {
            asked.send(client, "one")
            asked.receive(client)
            asked.send(client, "two", .data([1, 2, 3]))
            asked.ping(client, "pong")
            asked.send(client, "three")
            client.resumeOnLoop()
        }
        #expect(harness.run { harness.accepted.count == 1 })
        let server = harness.accepted[0]
        harness.perform {
            for _ in 0..<3 { heard.receive(server) }
            heard.send(server, "back")
        }
        #expect(harness.run { asked.lines.count == 5 && heard.lines.count == 4 })
        #expect(asked.lines.filter { $0 != "received:back" && $0 != "pong" } == ["one", "two", "three"])
        #expect(heard.messages == [.string("one"), .data([1, 2, 3]), .string("three")])
        #expect(client.subprotocol == "chat" && server.subprotocol == "chat")
        #expect(client.response?.status == 101 && server.response == nil)
        harness.perform {
            heard.receive(server)
            client.cancelOnLoop()
        }
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func sendCompletesAndALargeMessageArrivesWhole(_ kind: TransportTestbed.Kind) throws {
        let harness = try WebSocketHarness(kind)
        harness.options.maximumMessageSize = 4 << 20
        var options = WebSocketOptions()
        options.maximumMessageSize = 4 << 20
        let (client, server) = try harness.pair(options: options)
        let (left, right) = (WebSocketRecorder(), WebSocketRecorder())
        let large = WebSocketTask.Message.data(.pattern(3_000_000))
        // Both send more than all buffers hold at the same time: neither may stop reading because of its own output.
        harness.perform {
            left.receiveAll(client)
            right.receiveAll(server)
            for name in ["a", "b"] {
                left.send(client, name, large)
                right.send(server, name, large)
            }
        }
        #expect(harness.run { left.messages.count == 2 && right.messages.count == 2 })
        #expect(left.messages == [large, large] && right.messages == [large, large])
        #expect(harness.run { left.lines == ["a", "b"] && right.lines == ["a", "b"] })
        harness.perform { client.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func fragmentsAreJoinedAndPingsBetweenThemAnswered(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let recorder = WebSocketRecorder()
        peer.send(1, Array("Hel".utf8), isFinal: false)
        peer.send(9, "are you there")
        peer.send(0, "lo")
        peer.send(2, [9, 8])
        harness.perform { recorder.receive(task, "first") }
        #expect(harness.run { recorder.lines == ["first:Hello"] && peer.frames.count == 1 })
        harness.perform { recorder.receive(task, "second") }
        #expect(harness.run { recorder.lines.last == "second:2 bytes" })
        let pong = RawWebSocketPeer.Frame(
            opcode: 10, isFinal: true, isMasked: variant.role == .opened, payload: Array("are you there".utf8))
        #expect(peer.frames == [pong])
        #expect(task.record.messagesReceived == 2 && task.record.bytesReceived == 7)
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func pongsCompletePingsInOrder(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let recorder = WebSocketRecorder()
        harness.perform { for name in ["a", "b", "c"] { recorder.ping(task, name) } }
        #expect(harness.run { peer.frames.count == 3 })
        let pings = peer.frames
        peer.send(10, "unasked")
        harness.base.settle()
        #expect(recorder.lines.isEmpty)
        // The most recent ping alone may be answered (§5.5.3).
        peer.send(10, pings[1].payload)
        #expect(harness.run { recorder.lines == ["a", "b"] })
        peer.send(10, pings[2].payload)
        #expect(harness.run { recorder.lines == ["a", "b", "c"] })
        harness.perform {
            recorder.ping(task, "d")
            task.reset()
        }
        #expect(recorder.lines.last == "d!cancelled")
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases, [true, false])
    func bothLearnCodeAndReason(_ kind: TransportTestbed.Kind, _ clientCloses: Bool) throws {
        let harness = try WebSocketHarness(kind)
        let (client, server) = try harness.pair()
        let (closing, closed) = clientCloses ? (client, server) : (server, client)
        let (first, second) = (WebSocketRecorder(), WebSocketRecorder())
        first.watchEnd(closing)
        second.watchEnd(closed)
        harness.perform {
            first.send(closing, "last words")
            second.receive(closed, "a")
            second.receive(closed, "b")
            first.receive(closing, "c")
            closing.close(CloseCode(rawValue: 4321), reason: Array("enough".utf8))
            first.send(closing, "too late")
        }
        #expect(harness.run { first.end != nil && second.end != nil })
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
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func bothMayCloseAtOnce(_ kind: TransportTestbed.Kind) throws {
        let harness = try WebSocketHarness(kind)
        let (client, server) = try harness.pair()
        let (left, right) = (WebSocketRecorder(), WebSocketRecorder())
        left.watchEnd(client)
        right.watchEnd(server)
        harness.perform {
            client.close(.normalClosure, reason: [])
            server.close(.goingAway, reason: [])
        }
        #expect(harness.run { left.end != nil && right.end != nil })
        #expect(left.end?.isClean == true && right.end?.isClean == true)
        #expect(left.end?.code == .goingAway && right.end?.code == .normalClosure)
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func sendsAfterAQueuedCloseFail(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        peer.peer.isReading = false
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.send(task, "a", .data(.pattern(400_000)))
            recorder.send(task, "b", .data(.pattern(400_000)))
            task.close(.normalClosure)
            recorder.send(task, "c")
            recorder.ping(task, "d")
        }
        peer.peer.isReading = true
        #expect(harness.run { peer.close != nil })
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines == ["a", "b", "c!\(TaskFailure.closed)", "d!\(TaskFailure.closed)"])
        #expect(recorder.end?.isClean == true)
        harness.finish()
    }

    /// The peer may never read again.
    @Test(arguments: TaskRole.allCases)
    func closeBehindMessagesThatNobodyReadsEndsTheTask(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        peer.peer.isReading = false
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            for _ in 0..<4 { recorder.send(task, "a", .data(.pattern(400_000))) }
            task.close(.goingAway)
        }
        #expect(harness.run(atMost: .seconds(20)) { recorder.end != nil })
        #expect(recorder.end?.failure == .peerUnresponsive)
        harness.finish()
    }

    /// Whatever is asked of the task meanwhile.
    @Test(arguments: TaskRole.allCases, ["a message", "another Close", "a suspension"])
    func queuedCloseIsGivenUpInTime(_ role: TaskRole, _ request: String) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        peer.peer.isReading = false
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            for _ in 0..<4 { recorder.send(task, "a", .data(.pattern(400_000))) }
            task.close(.goingAway)
        }
        for _ in 0..<5 where recorder.end == nil {
            harness.perform {
                switch request {
                case "a message": recorder.send(task, "late")
                case "another Close": task.close(.normalClosure)
                default: task.suspendOnLoop()
                }
            }
            _ = harness.run(atMost: .seconds(3)) { recorder.end != nil }
        }
        #expect(recorder.end?.failure == .peerUnresponsive)
        harness.finish()
    }

    /// Otherwise two ends that both send much would wait for each other.
    @Test(arguments: TaskRole.allCases)
    func pingsAmongMessagesThatNobodyReadsDoNotStopReading(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        peer.peer.isReading = false
        let recorder = WebSocketRecorder()
        harness.perform {
            for _ in 0..<4 { recorder.send(task, "a", .data(.pattern(400_000))) }
            recorder.receive(task, "b")
        }
        #expect(harness.run(atMost: .seconds(1)) { task.queuedBytes > WebSocketTask.outputWatermark })
        for _ in 0..<10 { peer.send(9, "ping") }
        peer.send(1, "hello")
        #expect(harness.run(atMost: .seconds(1)) { recorder.lines == ["b:hello"] })
        peer.peer.isReading = true
        #expect(harness.run { peer.frames.count { $0.opcode == 10 } == 10 && recorder.lines.count == 5 })
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func receiversFailAtTheCloseFrameNotAtTheEnd(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        harness.perform { recorder.receive(task) }
        peer.send(8, [0x03, 0xE8])
        #expect(harness.run(atMost: .seconds(1)) { recorder.lines == ["received!\(TaskFailure.closed)"] })
        #expect(harness.run { peer.close == [0x03, 0xE8] })
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func anEndWithoutCloseFrameIsAbnormal(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.receive(task, "a")
            recorder.receive(task, "b")
        }
        peer.send(1, "last")
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines.first == "a:last" && recorder.lines.last?.hasPrefix("b!") == true)
        #expect(recorder.end?.isClean == false && task.closeCode == nil)
        if case .connectionLost? = recorder.end?.failure {} else { Issue.record("\(String(describing: recorder.end))") }
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func aMessageBeyondTheLimitEndsWith1009(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        var options = WebSocketOptions()
        options.maximumMessageSize = 100
        let (task, peer) = try harness.raw(variant.role, options: options)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.receive(task, "fits")
            recorder.receive(task, "long")
        }
        peer.send(2, .pattern(100))
        peer.send(2, .pattern(60), isFinal: false)
        peer.send(0, .pattern(41))
        #expect(harness.run { recorder.end != nil && peer.close != nil })
        #expect(recorder.lines == ["fits:100 bytes", "long!\(TaskFailure.messageTooLong(limit: 100))"])
        #expect(peer.close?.prefix(2) == [0x03, 0xF1])
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func aBrokenRuleEndsWithItsCode(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        peer.send(1, [0x48, 0xC0, 0x20])
        #expect(harness.run { recorder.end != nil && peer.close != nil })
        #expect(peer.close?.prefix(2) == [0x03, 0xEF])
        if case .protocolViolation(1007, _)? = recorder.end?.failure {
        } else {
            Issue.record("\(String(describing: recorder.end))")
        }
        #expect(recorder.end?.isClean == false && task.closeCode == .invalidPayloadData)
        harness.finish()
    }

    @Test(arguments: TaskVariant.all)
    func unreadMessagesStopTheReading(_ variant: TaskVariant) throws {
        let harness = try WebSocketHarness(variant.kind)
        let (task, peer) = try harness.raw(variant.role)
        let message = [UInt8].pattern(64_000)
        // More than the kernel's buffers take.
        let count = variant.kind == .sockets ? 300 : 60
        let frame = peer.encoded(2, message)
        peer.peer.send((0..<count).flatMap { _ in frame })
        harness.base.settle()
        #expect(task.record.bytesReceived <= 1 << 20 + 2 * 64_000)
        #expect(peer.peer.unsentBytes > 0)
        let recorder = WebSocketRecorder()
        harness.perform { recorder.receiveAll(task) }
        #expect(harness.run { recorder.messages.count == count })
        // A debug build compares slowly: not all of them.
        for index in [0, count / 2, count - 1] { #expect(recorder.messages[index] == .data(message)) }
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func keepAliveDetectsADeadPeer(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try harness.raw(role, options: options)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        #expect(harness.run(atMost: .seconds(11)) { peer.frames.count == 1 })
        peer.send(10, peer.frames[0].payload)
        #expect(harness.run(atMost: .seconds(11)) { peer.frames.count == 2 })
        #expect(recorder.end == nil)
        #expect(!harness.run(atMost: .milliseconds(3900)) { recorder.end != nil })
        #expect(harness.run(atMost: .milliseconds(200)) { recorder.end != nil })
        #expect(recorder.end?.failure == .peerUnresponsive)
        #expect(harness.run { peer.peer.failure == .reset })
        harness.finish()
    }

    /// A task that sends more than the kernels of both sides hold, and pings, to a peer that reads on demand.
    private func sending(_ count: Int, _ role: TaskRole, in harness: WebSocketHarness) throws -> (
        RawWebSocketPeer, WebSocketRecorder
    ) {
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try harness.raw(role, options: options)
        peer.peer.isReading = false
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform { recorder.send(task, "sent", .data(.pattern(count))) }
        return (peer, recorder)
    }

    private func read(_ count: Int, _ peer: RawWebSocketPeer, in harness: WebSocketHarness) {
        peer.peer.readLimit = count
        let before = peer.peer.received.count
        peer.peer.isReading = true
        #expect(harness.run { peer.peer.received.count > before })
        peer.peer.isReading = false
    }

    @Test(arguments: TaskRole.allCases)
    func aPeerThatReadsSlowlyIsNotTakenForADeadOne(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (peer, recorder) = try self.sending(1_000_000, role, in: harness)
        // What its kernel holds takes it longer than the pong timeout; so it never gets to a Ping in time.
        while peer.peer.received.count < 1_000_000 {
            self.read(16_000, peer, in: harness)
            #expect(!harness.run(atMost: .seconds(1)) { recorder.end != nil })
            guard recorder.end == nil else { return }
        }
        peer.peer.isReading = true
        #expect(harness.run { peer.frames.count > 1 })
        #expect(peer.frames[0].payload == .pattern(1_000_000) && peer.frames[1].opcode == 9)
        peer.send(10, peer.frames[1].payload)
        #expect(!harness.run(atMost: .seconds(9)) { recorder.end != nil })
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func aPeerThatStopsReadingIsNoticedInTime(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (peer, recorder) = try self.sending(1_000_000, role, in: harness)
        for _ in 0..<30 {
            self.read(16_000, peer, in: harness)
            #expect(!harness.run(atMost: .seconds(1)) { recorder.end != nil })
        }
        // The last sign of life is seen within half the pong timeout, and four times the timeout count from then: what
        // its kernel still holds for it may take it so long.
        #expect(!harness.run(atMost: .milliseconds(14_900)) { recorder.end != nil })
        #expect(harness.run(atMost: .milliseconds(2_300)) { recorder.end != nil })
        #expect(recorder.end?.failure == .peerUnresponsive)
        harness.finish()
    }

    /// The kernel of a hanging program acknowledges data until its buffer is full.
    @Test(arguments: TaskRole.allCases)
    func peerThatStopsReadingIsDetectedByPings(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        var options = WebSocketOptions()
        options.pingInterval = .seconds(10)
        options.pongTimeout = .seconds(4)
        let (task, peer) = try harness.raw(role, options: options)
        peer.peer.isReading = false
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        for _ in 0..<13 {
            harness.perform { recorder.send(task, "tick") }
            #expect(!harness.run(atMost: .seconds(1)) { recorder.end != nil })
        }
        #expect(harness.run(atMost: .milliseconds(1_100)) { recorder.end != nil })
        #expect(recorder.end?.failure == .peerUnresponsive)
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func aPeerThatDoesNotAnswerTheCloseIsCutOff(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform { task.close(.normalClosure) }
        #expect(!harness.run(atMost: .milliseconds(4900)) { recorder.end != nil })
        #expect(harness.run(atMost: .milliseconds(200)) { recorder.end != nil })
        #expect(recorder.end?.isClean == false && recorder.end?.failure == .peerUnresponsive)
        #expect(peer.close == [0x03, 0xE8])
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func theTimeToAnswerACloseBeginsWhenItHasLeft(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        peer.peer.readLimit = 40_000
        peer.peer.isReading = false
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        let message = [UInt8].pattern(900_000)
        harness.perform {
            recorder.send(task, "much", .data(message))
            task.close(.normalClosure)
        }
        // Reads for a moment every four seconds: slow, but there.
        for _ in 0..<20 where task.queuedBytes > 0 {
            _ = harness.base.testbed.network?.run(for: .seconds(4))
            let before = peer.peer.received.count
            peer.peer.isReading = true
            _ = harness.run(atMost: .milliseconds(100)) { peer.peer.received.count > before + 100_000 }
            peer.peer.isReading = false
        }
        #expect(task.queuedBytes == 0 && harness.base.loop.now.nanoseconds > 8_000_000_000)
        peer.peer.isReading = true
        #expect(
            harness.run { peer.close == [0x03, 0xE8] },
            "\(String(describing: recorder.end)), \(peer.peer.received.count)")
        #expect(peer.frames.first?.payload.count == message.count)
        peer.send(8, [0x03, 0xE8])
        peer.peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.end?.isClean == true && recorder.lines == ["much"])
        harness.finish()
    }

    @Test(arguments: [DeflatePolicy(), DeflatePolicy(ownContextTakeover: false, peerContextTakeover: false)])
    func messagesAreCompressedIfNegotiated(_ policy: DeflatePolicy) throws {
        let harness = try WebSocketHarness(.simulation)
        harness.deflate = policy
        let (client, server) = try harness.pair(deflate: policy)
        let (left, right) = (WebSocketRecorder(), WebSocketRecorder())
        let texts = (0..<20).map { String(repeating: "all work and no play \($0) ", count: 200) }
        harness.perform {
            left.receiveAll(client)
            right.receiveAll(server)
            for text in texts {
                left.send(client, text)
                right.send(server, text)
            }
        }
        #expect(harness.run { left.messages.count == 20 && right.messages.count == 20 })
        #expect(left.messages == texts.map { .string($0) } && right.messages == texts.map { .string($0) })
        let plain = texts.reduce(0) { $0 + $1.utf8.count }
        #expect(client.writtenBytes < plain / 4)
        harness.perform { client.cancelOnLoop() }
        harness.finish()
    }

    @Test(arguments: TaskRole.allCases)
    func cancelSendsACloseFrameAndFailsPendingOperations(_ role: TaskRole) throws {
        let harness = try WebSocketHarness(.simulation)
        let (task, peer) = try harness.raw(role)
        let recorder = WebSocketRecorder()
        recorder.watchEnd(task)
        harness.perform {
            recorder.receive(task, "r")
            recorder.ping(task, "p")
            task.cancelOnLoop()
            recorder.receive(task, "s")
            recorder.send(task, "t")
        }
        #expect(recorder.lines.sorted() == ["p!cancelled", "r!cancelled", "s!cancelled", "t!cancelled"])
        #expect(recorder.end?.failure == .cancelled)
        #expect(harness.run { peer.close != nil })
        harness.finish()
    }
}
