import ByteKernels
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TLSEngine
import TestSupport
import Testing

@Suite("TLS that begins in the middle of a stream")
struct StartingTLSTests {
    private typealias Pair = (opened: StreamTask, accepted: StreamTask)

    /// The dialogue of STARTTLS (RFC 3207 §2), everything asked for at once by both.
    @Test(arguments: TransportTestbed.Kind.allCases)
    func tlsStartsAfterThePendingDialogue(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let pair = try meeting.streamPair()
        let (client, server) = (TaskDiary(), TaskDiary())
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        meeting.perform {
            client.read(pair.opened, "greeting", 4, 4)
            client.write(pair.opened, "STARTTLS")
            client.read(pair.opened, "go", 3, 3)
            client.secure(pair.opened, "secure", clientSettings)
            client.write(pair.opened, "secret")
            client.read(pair.opened, "answer", 6, 9)
            server.write(pair.accepted, "220 ")
            server.read(pair.accepted, "command", 8, 8)
        }
        #expect(meeting.run { server.lines.contains("command:STARTTLS") })
        #expect(client.lines == ["STARTTLS", "greeting:220 "] || client.lines == ["greeting:220 ", "STARTTLS"])
        meeting.perform {
            server.write(pair.accepted, "220")
            server.secure(pair.accepted, "secure", serverSettings)
            server.read(pair.accepted, "inside", 6, 9)
            server.write(pair.accepted, "hidden")
        }
        #expect(meeting.run { client.lines.count == 6 && server.lines.count == 6 })
        #expect(client.lines.suffix(4).sorted() == ["answer:hidden", "go:220", "secret", "secure"])
        #expect(server.lines.suffix(4).sorted() == ["220", "hidden", "inside:secret", "secure"])
        #expect(pair.opened.record.read { $0.tls } != nil && pair.accepted.record.read { $0.tls } != nil)
        meeting.perform {
            pair.opened.cancelOnLoop()
            pair.accepted.cancelOnLoop()
        }
        meeting.finish()
    }

    /// No answer is waited for: the ClientHello comes on the heels of the last plain byte.
    @Test(arguments: TransportTestbed.Kind.allCases)
    func handshakeIsFoundAfterTheLastPlainByte(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let pair = try meeting.streamPair()
        let (client, server) = (TaskDiary(), TaskDiary())
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        meeting.perform {
            client.write(pair.opened, "go")
            client.secure(pair.opened, "secure", clientSettings)
            client.write(pair.opened, "secret")
        }
        meeting.settle()
        meeting.perform {
            server.read(pair.accepted, "plain", 2, 2)
            server.secure(pair.accepted, "secure", serverSettings)
            server.read(pair.accepted, "inside", 6, 6)
        }
        #expect(meeting.run { client.lines.count == 3 && server.lines.count == 3 })
        #expect(server.lines == ["plain:go", "secure", "inside:secret"])
        meeting.perform {
            pair.opened.cancelOnLoop()
            pair.accepted.cancelOnLoop()
        }
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func largeDataGoesBothWaysAndEndsWithCloseNotify(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let pair = try self.secured(meeting)
        let (client, server) = (TaskDiary(), TaskDiary())
        client.watchEnd(pair.opened)
        server.watchEnd(pair.accepted)
        let bytes = [UInt8].pattern(900_000)
        meeting.perform {
            client.write(pair.opened, "much", bytes)
            client.write(pair.opened, "little", [7])
            pair.opened.closeWriteOnLoop()
            client.readAll(pair.opened)
            server.write(pair.accepted, "much", bytes)
            pair.accepted.closeWriteOnLoop()
            server.readAll(pair.accepted)
        }
        #expect(meeting.run { client.end != nil && server.end != nil })
        #expect(client.end == .some(nil) && server.end == .some(nil))
        #expect(client.bytes == bytes && server.bytes == bytes + [7])
        #expect(client.lines == ["much", "little"] && server.lines == ["much"])
        meeting.finish()
    }

    /// The peer sent close_notify and disconnected: its system answers our close_notify with a reset. The received bytes and
    /// the clean end stay valid.
    @Test func secureStreamIsReadToTheEndAfterItsPeerClosed() throws {
        let meeting = try TaskMeeting(.simulation)
        let pair = try self.secured(meeting)
        let client = TaskDiary()
        let server = TaskDiary()
        client.watchEnd(pair.opened)
        meeting.perform {
            pair.opened.watchDirections(readAhead: 100, inputClosed: {}, outputClosed: {})
            server.write(pair.accepted, "bye")
        }
        #expect(meeting.run { server.lines == ["bye"] })
        meeting.perform { pair.accepted.closeOnLoop() }
        // Until it lingers no more.
        if let network = meeting.ground.network { _ = network.run(for: .seconds(10)) }
        meeting.perform { pair.opened.closeWriteOnLoop() }
        if let network = meeting.ground.network { _ = network.run(for: .seconds(1)) }
        #expect(client.end == nil && pair.opened.stage == .closing)
        meeting.perform { client.readAll(pair.opened) }
        #expect(meeting.run { client.end != nil })
        #expect(client.end == .some(nil) && client.lines.allSatisfy { !$0.contains("!") }, "\(client.lines)")
        #expect(client.bytes == Array("bye".utf8))
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func anUntrustedCertificateEndsTheTask(_ kind: TransportTestbed.Kind) throws {
        let meeting = try TaskMeeting(kind)
        let pair = try meeting.streamPair()
        let diary = TaskDiary()
        let server = TaskDiary()
        diary.watchEnd(pair.opened)
        server.watchEnd(pair.accepted)
        let other = try SecureFixture.otherRoot()
        let settings = try SecureFixture.client { $0.trust = .only([other]) }
        let serverSettings = try SecureFixture.server()
        meeting.perform {
            diary.secure(pair.opened, "secure", settings)
            diary.write(pair.opened, "secret")
            diary.read(pair.opened, "r", 1, 9)
            server.secure(pair.accepted, "secure", serverSettings)
            server.read(pair.accepted, "r", 1, 9)
        }
        #expect(meeting.run { diary.end != nil && server.end != nil })
        #expect(diary.lines.count == 3 && diary.lines.allSatisfy { $0.contains("!TLS failed") })
        #expect(server.lines.count == 2 && server.lines.allSatisfy { $0.contains("!") })
        if case .secureConnectionFailed? = diary.end ?? nil {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }

    @Test func failedReadPreventsStartingTLS() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let diary = TaskDiary()
        let settings = try SecureFixture.client()
        meeting.perform {
            diary.read(task, "go", 3, 3, timeout: .seconds(1))
            diary.secure(task, "secure", settings)
        }
        #expect(meeting.run { diary.lines.count == 2 })
        #expect(diary.lines == ["go!timed out", "secure!timed out"])
        meeting.settle()
        #expect(peer.received.isEmpty)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    /// Data meant for TLS is not sent in the clear, whatever prevented TLS from starting.
    @Test(arguments: ["a read that timed out", "a closed direction", "a cancelled wait"])
    func writesAfterFailedTLSAreNotSentInPlaintext(_ obstacle: String) throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let diary = TaskDiary()
        let settings = try SecureFixture.client()
        meeting.perform {
            switch obstacle {
            case "a read that timed out": diary.read(task, "go", 3, 3, timeout: .seconds(1))
            case "a closed direction": task.closeReadOnLoop()
            default: diary.read(task, "go", 3, 3)
            }
            let number = task.startSecure(settings) { diary.note("secure", $0) }
            diary.write(task, "secret")
            diary.read(task, "inside", 1, 9)
            if obstacle == "a cancelled wait" { task.withdrawSecuring(number) }
        }
        #expect(meeting.run { diary.lines.contains { $0.hasPrefix("secret!") } })
        meeting.perform { diary.write(task, "later") }
        meeting.settle()
        #expect(diary.lines.allSatisfy { $0.contains("!") }, "\(diary.lines)")
        #expect(peer.received.isEmpty)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    /// A server's answers that were slipped in before TLS began are not taken for those given under TLS (RFC 3207 §6).
    @Test(arguments: TransportTestbed.Kind.allCases, [true, false])
    func bytesReceivedAfterTheLastReadAreNoPlaintext(_ kind: TransportTestbed.Kind, _ arriveLater: Bool) throws {
        let meeting = try TaskMeeting(kind)
        let (task, peer) = try meeting.opened()
        let diary = TaskDiary()
        diary.watchEnd(task)
        let settings = try SecureFixture.client()
        let injected = "250 injected\r\n"
        peer.send(Array("220\r\n\(arriveLater ? "" : injected)".utf8))
        meeting.perform {
            diary.read(task, "go", 5, 5)
            diary.secure(task, "secure", settings)
            diary.read(task, "inside", 1, 100)
        }
        #expect(meeting.run { diary.lines.first == "go:220\r\n" })
        if arriveLater { peer.send(Array(injected.utf8)) }
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines.count == 3 && diary.lines.dropFirst().allSatisfy { $0.contains("!TLS failed") })
        meeting.finish()
    }

    @Test func startingTLSNeedsBothDirections() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, _) = try meeting.opened()
        let diary = TaskDiary()
        let settings = try SecureFixture.client()
        meeting.perform {
            task.closeWriteOnLoop()
            diary.secure(task, "secure", settings)
        }
        #expect(diary.lines == ["secure!\(TaskFailure.directionClosed)"])
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    /// Far below the time for the handshake: no answer can come from a peer that has finished.
    @Test func tlsFailsAtOnceBehindTheEndOfInput() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let diary = TaskDiary()
        diary.watchEnd(task)
        let settings = try SecureFixture.client()
        var hasSeenEnd = false
        meeting.perform { task.watchDirections(readAhead: 100, inputClosed: { hasSeenEnd = true }, outputClosed: {}) }
        peer.finish()
        #expect(meeting.run { hasSeenEnd })
        meeting.perform {
            diary.secure(task, "secure", settings)
            diary.write(task, "secret")
        }
        #expect(meeting.run(atMost: .seconds(1)) { diary.end != nil })
        if case .secureConnectionFailed(let failure)? = diary.end ?? nil {
            #expect(failure.kind == .closedDuringHandshake)
        } else {
            Issue.record("\(String(describing: diary.end))")
        }
        #expect(diary.lines.count == 2 && diary.lines.allSatisfy { $0.contains("!TLS failed") }, "\(diary.lines)")
        meeting.settle()
        #expect(peer.received.isEmpty)
        meeting.perform { task.cancelOnLoop() }
        meeting.finish()
    }

    @Test func cancellingDuringTheHandshakeResetsAtOnce() throws {
        let meeting = try TaskMeeting(.simulation)
        let (task, peer) = try meeting.opened()
        let diary = TaskDiary()
        let settings = try SecureFixture.client()
        meeting.perform {
            diary.secure(task, "secure", settings)
            diary.read(task, "r", 1, 9)
        }
        meeting.settle()
        #expect(!peer.received.isEmpty)
        meeting.perform { task.cancelOnLoop() }
        #expect(diary.lines == ["secure!cancelled", "r!cancelled"])
        #expect(meeting.run(atMost: .seconds(1)) { peer.failure == .reset })
        meeting.finish()
    }

    @Test func lostPeerIsNoOrderlyEnd() throws {
        let meeting = try TaskMeeting(.simulation)
        let pair = try meeting.transportPair()
        let diary = TaskDiary()
        var server: SecureTransport?
        let consumer = RecordingConsumer()
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        var client: StreamTask?
        meeting.perform {
            let task = StreamTask(adopting: pair.opened)
            client = task
            diary.watchEnd(task)
            diary.secure(task, "secure", clientSettings)
            diary.read(task, "r", 100, 100)
            SecureTransport.upgrade(pair.accepted, settings: serverSettings, received: []) { result in
                server = try? result.get()
                server?.consumer = consumer
                Array("partial".utf8).withRawSpan { server?.write($0) }
            }
        }
        #expect(meeting.run { diary.lines.contains("secure") && client?.record.bytesReceived == 7 })
        meeting.perform { server?.lower.close(linger: .zero) }
        #expect(meeting.run { diary.end != nil })
        #expect(diary.lines.last?.hasPrefix("r!") == true)
        if case .connectionLost? = diary.end ?? nil {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }

    private func secured(_ meeting: TaskMeeting) throws -> Pair {
        let pair = try meeting.streamPair()
        let diary = TaskDiary()
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        meeting.perform {
            diary.secure(pair.opened, "client", clientSettings)
            diary.secure(pair.accepted, "server", serverSettings)
        }
        #expect(meeting.run { diary.lines.count == 2 })
        #expect(diary.lines.sorted() == ["client", "server"])
        return pair
    }
}
