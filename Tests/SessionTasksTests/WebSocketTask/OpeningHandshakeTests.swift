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
        _ meeting: WebSocketMeeting, _ diary: WebSocketDiary, options: WebSocketOptions = WebSocketOptions()
    ) throws -> (task: WebSocketTask, peer: ScriptedPeer) {
        let task = meeting.client(to: meeting.meeting.peers.address, options: options)
        diary.watchEnd(task)
        meeting.perform {
            diary.receive(task, "r")
            diary.send(task, "s")
            task.resumeOnLoop()
        }
        #expect(meeting.run { meeting.meeting.peers.accepted.last?.received.suffix(4) == Array("\r\n\r\n".utf8)[...] })
        return (task, try #require(meeting.meeting.peers.accepted.last))
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func refusedHandshakeKeepsTheResponse(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        let diary = WebSocketDiary()
        let (task, peer) = try self.asking(meeting, diary)
        peer.send("HTTP/1.1 403 Forbidden\r\nContent-Length: 6\r\nX-Reason: a b\r\n\r\nno way")
        #expect(meeting.run { diary.end != nil })
        #expect(diary.end?.failure == .handshakeRefused(status: 403))
        #expect(task.response?.status == 403 && task.response?.fields["X-Reason"] == "a b")
        #expect(task.responseBody == Array("no way".utf8))
        #expect(
            diary.lines.sorted() == [
                "r!\(TaskFailure.handshakeRefused(status: 403))", "s!\(TaskFailure.handshakeRefused(status: 403))",
            ])
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func first16KiBOfALongRefusalAreKept(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        let diary = WebSocketDiary()
        let (task, peer) = try self.asking(meeting, diary)
        let body = [UInt8].pattern(100_000)
        peer.send("HTTP/1.1 500 Broken\r\nContent-Length: 100000\r\n\r\n")
        peer.send(body)
        #expect(meeting.run { diary.end != nil })
        #expect(task.responseBody == Array(body.prefix(16 << 10)))
        meeting.finish()
    }

    /// RFC 9112 §7.1. The server keeps the connection.
    @Test(arguments: TransportTestbed.Kind.allCases)
    func chunkedBodyEndsWithItsLastChunk(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        let diary = WebSocketDiary()
        let (task, peer) = try self.asking(meeting, diary)
        peer.send("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nno such \r\n6;a=b\r\nthing\n")
        peer.send("\r\n0\r\n\r\n")
        #expect(meeting.run { diary.end != nil })
        #expect(diary.end?.failure == .handshakeRefused(status: 404))
        #expect(task.responseBody == Array("no such thing\n".utf8))
        meeting.finish()
    }

    /// RFC 9112 §6.3.
    @Test(arguments: ["204 No Content", "304 Not Modified", "404 Not Found\r\nContent-Length: 00"])
    func refusalWithoutABodyEndsAtOnce(_ head: String) throws {
        let meeting = try WebSocketMeeting(.sockets)
        let diary = WebSocketDiary()
        let (task, peer) = try self.asking(meeting, diary)
        peer.send("HTTP/1.1 \(head)\r\n\r\n")
        #expect(meeting.run { diary.end != nil })
        #expect(task.response?.status == Int(head.prefix(3)) && task.responseBody.isEmpty)
        meeting.finish()
    }

    @Test func aBodyWithoutLengthEndsWithTheConnection() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let diary = WebSocketDiary()
        let (task, peer) = try self.asking(meeting, diary)
        peer.send("HTTP/1.1 404 Not Found\r\n\r\nnothing")
        meeting.meeting.settle()
        peer.send(" here")
        peer.finish()
        #expect(meeting.run { diary.end != nil })
        #expect(diary.end?.failure == .handshakeRefused(status: 404))
        #expect(task.responseBody == Array("nothing here".utf8))
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func frameReceivedWithThe101IsDelivered(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        let diary = WebSocketDiary()
        let (task, peer) = try self.asking(meeting, diary)
        let raw = RawWebSocketPeer(peer, isClient: false)
        peer.send(
            RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value)
                + raw.encoded(1, Array("early".utf8)) + raw.encoded(2, [1])
        )
        meeting.perform { diary.receive(task, "second") }
        #expect(meeting.run { diary.lines.count == 3 })
        #expect(diary.lines.filter { $0 != "s" } == ["r:early", "second:1 bytes"])
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func frameReceivedWithTheRequestIsDelivered(_ kind: TransportTestbed.Kind) throws {
        let meeting = try WebSocketMeeting(kind)
        let peer = try meeting.meeting.host.connect(to: meeting.meeting.listener.address)
        let raw = RawWebSocketPeer(peer, isClient: true)
        peer.send(Array(RawWebSocketPeer.request.utf8) + raw.encoded(1, Array("early".utf8)))
        #expect(meeting.run { meeting.accepted.count == 1 })
        let diary = WebSocketDiary()
        meeting.perform { diary.receive(meeting.accepted[0]) }
        #expect(meeting.run { diary.lines == ["received:early"] })
        meeting.perform { meeting.accepted[0].reset() }
        meeting.finish()
    }

    @Test func interimResponsesAreSkipped() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let diary = WebSocketDiary()
        let (task, peer) = try self.asking(meeting, diary)
        let answer = RawWebSocketPeer.response(to: peer.takeReceived(), accept: AcceptKey.value)
        peer.send("HTTP/1.1 102 Processing\r\n\r\n")
        meeting.meeting.settle()
        peer.send(answer)
        #expect(meeting.run { task.record.openedAt != nil })
        meeting.perform { task.reset() }
        meeting.finish()
    }

    @Test(arguments: [
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: AAAA\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ])
    func anAnswerThatBreaksARuleFailsTheTask(_ answer: String) throws {
        let meeting = try WebSocketMeeting(.simulation)
        let diary = WebSocketDiary()
        let (_, peer) = try self.asking(meeting, diary)
        peer.send(answer)
        #expect(meeting.run { diary.end != nil })
        if case .protocolViolation? = diary.end?.failure {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }

    @Test func silenceEndsAtTheDeadline() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let diary = WebSocketDiary()
        var options = WebSocketOptions()
        options.handshakeTimeout = .seconds(3)
        let (task, peer) = try self.asking(meeting, diary, options: options)
        #expect(!meeting.run(atMost: .milliseconds(2900)) { diary.end != nil })
        #expect(meeting.run(atMost: .milliseconds(200)) { diary.end != nil })
        #expect(diary.end?.failure == .timedOut && task.record.isConnected)
        #expect(meeting.run { peer.failure == .reset })
        meeting.finish()
    }

    @Test func anEndBeforeTheAnswerIsALostConnection() throws {
        let meeting = try WebSocketMeeting(.simulation)
        let diary = WebSocketDiary()
        let (_, peer) = try self.asking(meeting, diary)
        peer.finish()
        #expect(meeting.run { diary.end != nil })
        if case .connectionLost? = diary.end?.failure {} else { Issue.record("\(String(describing: diary.end))") }
        meeting.finish()
    }
}
