import ByteKernels
import SessionTasks
import StreamTransport
import TestSupport
import Testing
import WebSocketProtocol

@Suite("A WebSocket task's opening handshake, RFC 6455 §4.1")
struct OpeningHandshakeTests {
    /// The task that asked, what became of it, and the peer that was asked.
    private func asking(
        _ harness: WebSocketHarness, _ recorder: WebSocketRecorder, options: WebSocketOptions = WebSocketOptions()
    ) throws -> (task: WebSocketTask, peer: ScriptedPeer) {
        let task = harness.client(to: harness.base.peers.address, options: options)
        recorder.watchEnd(task)
        harness.perform {
            recorder.receive(task, "r")
            recorder.send(task, "s")
            task.resumeOnLoop()
        }
        #expect(harness.run { harness.base.peers.accepted.last?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        return (task, try #require(harness.base.peers.accepted.last))
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func refusedHandshakeKeepsTheResponse(_ kind: TransportTestbed.Kind) throws {
        let harness = try WebSocketHarness(kind)
        let recorder = WebSocketRecorder()
        let (task, peer) = try self.asking(harness, recorder)
        peer.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nX-Reason: a b\r\n\r\nno way")
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.end?.failure == .handshakeRefused(status: 403))
        #expect(task.response?.status == 403 && task.response?.fields["X-Reason"] == "a b")
        #expect(task.responseBody == Array("no way".utf8))
        #expect(
            recorder.lines.sorted() == [
                "r!\(TaskFailure.handshakeRefused(status: 403))", "s!\(TaskFailure.handshakeRefused(status: 403))",
            ])
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func first16KiBOfALongRefusalAreKept(_ kind: TransportTestbed.Kind) throws {
        let harness = try WebSocketHarness(kind)
        let recorder = WebSocketRecorder()
        let (task, peer) = try self.asking(harness, recorder)
        let body = [UInt8].pattern(100_000)
        peer.send("HTTP/1.1 500 Broken\r\nContent-Length: 100000\r\n\r\n")
        peer.send(body)
        #expect(harness.run { recorder.end != nil })
        #expect(task.responseBody == Array(body.prefix(16 << 10)))
        harness.finish()
    }

    /// RFC 9112 §7.1. The server keeps the connection.
    @Test(arguments: TransportTestbed.Kind.allCases)
    func chunkedBodyEndsWithItsLastChunk(_ kind: TransportTestbed.Kind) throws {
        let harness = try WebSocketHarness(kind)
        let recorder = WebSocketRecorder()
        let (task, peer) = try self.asking(harness, recorder)
        peer.send("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nno such \r\n6;a=b\r\nthing\n")
        peer.send("\r\n0\r\n\r\n")
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.end?.failure == .handshakeRefused(status: 404))
        #expect(task.responseBody == Array("no such thing\n".utf8))
        harness.finish()
    }

    /// RFC 9112 §6.3.
    @Test(arguments: ["204 No Content", "304 Not Modified", "404 Not Found\r\nContent-Length: 00"])
    func refusalWithoutABodyEndsAtOnce(_ head: String) throws {
        let harness = try WebSocketHarness(.sockets)
        let recorder = WebSocketRecorder()
        let (task, peer) = try self.asking(harness, recorder)
        peer.send("HTTP/1.1 \(head)\r\n\r\n")
        #expect(harness.run { recorder.end != nil })
        #expect(task.response?.status == Int(head.prefix(3)) && task.responseBody.isEmpty)
        harness.finish()
    }

    @Test func aBodyWithoutLengthEndsWithTheConnection() throws {
        let harness = try WebSocketHarness(.simulation)
        let recorder = WebSocketRecorder()
        let (task, peer) = try self.asking(harness, recorder)
        peer.send("HTTP/1.1 404 Not Found\r\n\r\nnothing")
        harness.base.settle()
        peer.send(" here")
        peer.finish()
        #expect(harness.run { recorder.end != nil })
        #expect(recorder.end?.failure == .handshakeRefused(status: 404))
        #expect(task.responseBody == Array("nothing here".utf8))
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func frameReceivedWithThe101IsDelivered(_ kind: TransportTestbed.Kind) throws {
        let harness = try WebSocketHarness(kind)
        let recorder = WebSocketRecorder()
        let (task, peer) = try self.asking(harness, recorder)
        let raw = RawWebSocketPeer(peer, isClient: false)
        peer.send(
            RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value)
                + raw.encoded(1, Array("early".utf8)) + raw.encoded(2, [1])
        )
        harness.perform { recorder.receive(task, "second") }
        #expect(harness.run { recorder.lines.count == 3 })
        #expect(recorder.lines.filter { $0 != "s" } == ["r:early", "second:1 bytes"])
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func frameReceivedWithTheRequestIsDelivered(_ kind: TransportTestbed.Kind) throws {
        let harness = try WebSocketHarness(kind)
        let peer = try harness.base.host.connect(to: harness.base.listener.address)
        let raw = RawWebSocketPeer(peer, isClient: true)
        peer.send(Array(RawWebSocketPeer.request.utf8) + raw.encoded(1, Array("early".utf8)))
        #expect(harness.run { harness.accepted.count == 1 })
        let recorder = WebSocketRecorder()
        harness.perform { recorder.receive(harness.accepted[0]) }
        #expect(harness.run { recorder.lines == ["received:early"] })
        harness.perform { harness.accepted[0].reset() }
        harness.finish()
    }

    @Test func interimResponsesAreSkipped() throws {
        let harness = try WebSocketHarness(.simulation)
        let recorder = WebSocketRecorder()
        let (task, peer) = try self.asking(harness, recorder)
        let answer = RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value)
        peer.send("HTTP/1.1 102 Processing\r\n\r\n")
        harness.base.settle()
        peer.send(answer)
        #expect(harness.run { task.record.openedAt != nil })
        harness.perform { task.reset() }
        harness.finish()
    }

    @Test(arguments: [
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ])
    func anAnswerThatBreaksARuleFailsTheTask(_ answer: String) throws {
        let harness = try WebSocketHarness(.simulation)
        let recorder = WebSocketRecorder()
        let (_, peer) = try self.asking(harness, recorder)
        peer.send(answer)
        #expect(harness.run { recorder.end != nil })
        if case .protocolViolation? = recorder.end?.failure {
        } else {
            Issue.record("\(String(describing: recorder.end))")
        }
        harness.finish()
    }

    @Test func silenceEndsAtTheDeadline() throws {
        let harness = try WebSocketHarness(.simulation)
        let recorder = WebSocketRecorder()
        var options = WebSocketOptions()
        options.handshakeTimeout = .seconds(3)
        let (task, peer) = try self.asking(harness, recorder, options: options)
        #expect(!harness.run(atMost: .milliseconds(2900)) { recorder.end != nil })
        #expect(harness.run(atMost: .milliseconds(200)) { recorder.end != nil })
        #expect(recorder.end?.failure == .timedOut && task.record.isConnected)
        #expect(harness.run { peer.failure == .reset })
        harness.finish()
    }

    @Test func anEndBeforeTheAnswerIsALostConnection() throws {
        let harness = try WebSocketHarness(.simulation)
        let recorder = WebSocketRecorder()
        let (_, peer) = try self.asking(harness, recorder)
        peer.finish()
        #expect(harness.run { recorder.end != nil })
        if case .connectionLost? = recorder.end?.failure {} else { Issue.record("\(String(describing: recorder.end))") }
        harness.finish()
    }
}
