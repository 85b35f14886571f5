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
        let harness = try TaskHarness(kind)
        let pair = try harness.streamPair()
        let (client, server) = (TaskRecorder(), TaskRecorder())
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        harness.perform {
            client.read(pair.opened, "greeting", 4, 4)
            client.write(pair.opened, "STARTTLS")
            client.read(pair.opened, "go", 3, 3)
            client.secure(pair.opened, "secure", clientSettings)
            client.write(pair.opened, "secret")
            client.read(pair.opened, "answer", 6, 9)
            server.write(pair.accepted, "220 ")
            server.read(pair.accepted, "command", 8, 8)
        }
        #expect(harness.run { server.lines.contains("command:STARTTLS") })
        #expect(client.lines == ["STARTTLS", "greeting:220 "] || client.lines == ["greeting:220 ", "STARTTLS"])
        harness.perform {
            server.write(pair.accepted, "220")
            server.secure(pair.accepted, "secure", serverSettings)
            server.read(pair.accepted, "inside", 6, 9)
            server.write(pair.accepted, "hidden")
        }
        #expect(harness.run { client.lines.count == 6 && server.lines.count == 6 })
        #expect(client.lines.suffix(4).sorted() == ["answer:hidden", "go:220", "secret", "secure"])
        #expect(server.lines.suffix(4).sorted() == ["220", "hidden", "inside:secret", "secure"])
        #expect(pair.opened.record.read { $0.tls } != nil && pair.accepted.record.read { $0.tls } != nil)
        harness.perform {
            pair.opened.cancelOnLoop()
            pair.accepted.cancelOnLoop()
        }
        harness.finish()
    }

    /// No answer is waited for: the ClientHello comes on the heels of the last plain byte.
    @Test(arguments: TransportTestbed.Kind.allCases)
    func handshakeIsFoundAfterTheLastPlainByte(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let pair = try harness.streamPair()
        let (client, server) = (TaskRecorder(), TaskRecorder())
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        harness.perform {
            client.write(pair.opened, "go")
            client.secure(pair.opened, "secure", clientSettings)
            client.write(pair.opened, "secret")
        }
        harness.settle()
        harness.perform {
            server.read(pair.accepted, "plain", 2, 2)
            server.secure(pair.accepted, "secure", serverSettings)
            server.read(pair.accepted, "inside", 6, 6)
        }
        #expect(harness.run { client.lines.count == 3 && server.lines.count == 3 })
        #expect(server.lines == ["plain:go", "secure", "inside:secret"])
        harness.perform {
            pair.opened.cancelOnLoop()
            pair.accepted.cancelOnLoop()
        }
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func largeDataGoesBothWaysAndEndsWithCloseNotify(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let pair = try self.secured(harness)
        let (client, server) = (TaskRecorder(), TaskRecorder())
        client.watchEnd(pair.opened)
        server.watchEnd(pair.accepted)
        let bytes = [UInt8].pattern(900_000)
        harness.perform {
            client.write(pair.opened, "much", bytes)
            client.write(pair.opened, "little", [7])
            pair.opened.closeWriteOnLoop()
            client.readAll(pair.opened)
            server.write(pair.accepted, "much", bytes)
            pair.accepted.closeWriteOnLoop()
            server.readAll(pair.accepted)
        }
        #expect(harness.run { client.end != nil && server.end != nil })
        #expect(client.end == .some(nil) && server.end == .some(nil))
        #expect(client.bytes == bytes && server.bytes == bytes + [7])
        #expect(client.lines == ["much", "little"] && server.lines == ["much"])
        harness.finish()
    }

    /// The peer sent close_notify and disconnected: its system answers our close_notify with a reset. The received bytes and
    /// the clean end stay valid.
    @Test func secureStreamIsReadToTheEndAfterItsPeerClosed() throws {
        let harness = try TaskHarness(.simulation)
        let pair = try self.secured(harness)
        let client = TaskRecorder()
        let server = TaskRecorder()
        client.watchEnd(pair.opened)
        harness.perform {
            pair.opened.watchDirections(readAhead: 100, inputClosed: {}, outputClosed: {})
            server.write(pair.accepted, "bye")
        }
        #expect(harness.run { server.lines == ["bye"] })
        harness.perform { pair.accepted.closeOnLoop() }
        // Until it lingers no more.
        if let network = harness.testbed.network { _ = network.run(for: .seconds(10)) }
        harness.perform { pair.opened.closeWriteOnLoop() }
        if let network = harness.testbed.network { _ = network.run(for: .seconds(1)) }
        #expect(client.end == nil && pair.opened.stage == .closing)
        harness.perform { client.readAll(pair.opened) }
        #expect(harness.run { client.end != nil })
        #expect(client.end == .some(nil) && client.lines.allSatisfy { !$0.contains("!") }, "\(client.lines)")
        #expect(client.bytes == Array("bye".utf8))
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func anUntrustedCertificateEndsTheTask(_ kind: TransportTestbed.Kind) throws {
        let harness = try TaskHarness(kind)
        let pair = try harness.streamPair()
        let recorder = TaskRecorder()
        let server = TaskRecorder()
        recorder.watchEnd(pair.opened)
        server.watchEnd(pair.accepted)
        let other = try SecureFixture.otherRoot()
        let settings = try SecureFixture.client { $0.trust = .only([other]) }
        let serverSettings = try SecureFixture.server()
        harness.perform {
            recorder.secure(pair.opened, "secure", settings)
            recorder.write(pair.opened, "secret")
            recorder.read(pair.opened, "r", 1, 9)
            server.secure(pair.accepted, "secure", serverSettings)
            server.read(pair.accepted, "r", 1, 9)
        }
        #expect(harness.run { recorder.end != nil && server.end != nil })
        #expect(recorder.lines.count == 3 && recorder.lines.allSatisfy { $0.contains("!TLS failed") })
        #expect(server.lines.count == 2 && server.lines.allSatisfy { $0.contains("!") })
        if case .secureConnectionFailed? = recorder.end ?? nil {
        } else {
            Issue.record("\(String(describing: recorder.end))")
        }
        harness.finish()
    }

    @Test func failedReadPreventsStartingTLS() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let recorder = TaskRecorder()
        let settings = try SecureFixture.client()
        harness.perform {
            recorder.read(task, "go", 3, 3, timeout: .seconds(1))
            recorder.secure(task, "secure", settings)
        }
        #expect(harness.run { recorder.lines.count == 2 })
        #expect(recorder.lines == ["go!timed out", "secure!timed out"])
        harness.settle()
        #expect(peer.received.isEmpty)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    /// Data meant for TLS is not sent in the clear, whatever prevented TLS from starting.
    @Test(arguments: ["a read that timed out", "a closed direction", "a cancelled wait"])
    func writesAfterFailedTLSAreNotSentInPlaintext(_ obstacle: String) throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let recorder = TaskRecorder()
        let settings = try SecureFixture.client()
        harness.perform {
            switch obstacle {
            case "a read that timed out": recorder.read(task, "go", 3, 3, timeout: .seconds(1))
            case "a closed direction": task.closeReadOnLoop()
            default: recorder.read(task, "go", 3, 3)
            }
            let number = task.startSecure(settings) { recorder.note("secure", $0) }
            recorder.write(task, "secret")
            recorder.read(task, "inside", 1, 9)
            if obstacle == "a cancelled wait" { task.withdrawSecuring(number) }
        }
        #expect(harness.run { recorder.lines.contains { $0.hasPrefix("secret!") } })
        harness.perform { recorder.write(task, "later") }
        harness.settle()
        #expect(recorder.lines.allSatisfy { $0.contains("!") }, "\(recorder.lines)")
        #expect(peer.received.isEmpty)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    /// A server's answers that were slipped in before TLS began are not taken for those given under TLS (RFC 3207 §6).
    @Test(arguments: TransportTestbed.Kind.allCases, [true, false])
    func bytesReceivedAfterTheLastReadAreNoPlaintext(_ kind: TransportTestbed.Kind, _ arriveLater: Bool) throws {
        let harness = try TaskHarness(kind)
        let (task, peer) = try harness.opened()
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        let settings = try SecureFixture.client()
        let injected = "250 injected\r\n"
        peer.send(Array("220\r\n\(arriveLater ? "" : injected)".utf8))
        harness.perform {
            recorder.read(task, "go", 5, 5)
            recorder.secure(task, "secure", settings)
            recorder.read(task, "inside", 1, 100)
        }
        #expect(harness.run { recorder.lines.first == "go:220\r\n" })
        if arriveLater { peer.send(Array(injected.utf8)) }
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines.count == 3 && recorder.lines.dropFirst().allSatisfy { $0.contains("!TLS failed") })
        harness.finish()
    }

    @Test func startingTLSNeedsBothDirections() throws {
        let harness = try TaskHarness(.simulation)
        let (task, _) = try harness.opened()
        let recorder = TaskRecorder()
        let settings = try SecureFixture.client()
        harness.perform {
            task.closeWriteOnLoop()
            recorder.secure(task, "secure", settings)
        }
        #expect(recorder.lines == ["secure!\(TaskFailure.directionClosed)"])
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    /// Far below the time for the handshake: no answer can come from a peer that has finished.
    @Test func tlsFailsAtOnceBehindTheEndOfInput() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let recorder = TaskRecorder()
        recorder.watchEnd(task)
        let settings = try SecureFixture.client()
        var hasSeenEnd = false
        harness.perform { task.watchDirections(readAhead: 100, inputClosed: { hasSeenEnd = true }, outputClosed: {}) }
        peer.finish()
        #expect(harness.run { hasSeenEnd })
        harness.perform {
            recorder.secure(task, "secure", settings)
            recorder.write(task, "secret")
        }
        #expect(harness.run(atMost: .seconds(1)) { recorder.end != nil })
        if case .secureConnectionFailed(let failure)? = recorder.end ?? nil {
            #expect(failure.kind == .closedDuringHandshake)
        } else {
            Issue.record("\(String(describing: recorder.end))")
        }
        #expect(
            recorder.lines.count == 2 && recorder.lines.allSatisfy { $0.contains("!TLS failed") }, "\(recorder.lines)")
        harness.settle()
        #expect(peer.received.isEmpty)
        harness.perform { task.cancelOnLoop() }
        harness.finish()
    }

    @Test func cancellingDuringTheHandshakeResetsAtOnce() throws {
        let harness = try TaskHarness(.simulation)
        let (task, peer) = try harness.opened()
        let recorder = TaskRecorder()
        let settings = try SecureFixture.client()
        harness.perform {
            recorder.secure(task, "secure", settings)
            recorder.read(task, "r", 1, 9)
        }
        harness.settle()
        #expect(!peer.received.isEmpty)
        harness.perform { task.cancelOnLoop() }
        #expect(recorder.lines == ["secure!cancelled", "r!cancelled"])
        #expect(harness.run(atMost: .seconds(1)) { peer.failure == .reset })
        harness.finish()
    }

    @Test func lostPeerIsNoOrderlyEnd() throws {
        let harness = try TaskHarness(.simulation)
        let pair = try harness.transportPair()
        let recorder = TaskRecorder()
        var server: SecureTransport?
        let consumer = RecordingConsumer()
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        var client: StreamTask?
        harness.perform {
            let task = StreamTask(adopting: pair.opened)
            client = task
            recorder.watchEnd(task)
            recorder.secure(task, "secure", clientSettings)
            recorder.read(task, "r", 100, 100)
            SecureTransport.upgrade(pair.accepted, settings: serverSettings, received: []) { result in
                server = try? result.get()
                server?.consumer = consumer
                Array("partial".utf8).withRawSpan { server?.write($0) }
            }
        }
        #expect(harness.run { recorder.lines.contains("secure") && client?.record.bytesReceived == 7 })
        harness.perform { server?.lower.close(linger: .zero) }
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.lines.last?.hasPrefix("r!") == true)
        if case .connectionLost? = recorder.end ?? nil {} else { Issue.record("\(String(describing: recorder.end))") }
        harness.finish()
    }

    private func secured(_ harness: TaskHarness) throws -> Pair {
        let pair = try harness.streamPair()
        let recorder = TaskRecorder()
        let (clientSettings, serverSettings) = (try SecureFixture.client(), try SecureFixture.server())
        harness.perform {
            recorder.secure(pair.opened, "client", clientSettings)
            recorder.secure(pair.accepted, "server", serverSettings)
        }
        #expect(harness.run { recorder.lines.count == 2 })
        #expect(recorder.lines.sorted() == ["client", "server"])
        return pair
    }
}
