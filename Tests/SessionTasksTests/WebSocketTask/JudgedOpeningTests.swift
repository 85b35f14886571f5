import ByteKernels
import SessionTasks
import StreamTransport
import Synchronization
import TestSupport
import Testing
import WebSocketProtocol

@Suite("Opening handshakes whose refusals are judged")
struct JudgedOpeningTests {
    /// The requests that a judge receives, and its answers.
    private final class JudgeRecorder: Sendable {
        private let asked = Mutex<[(status: Int, answer: @Sendable (ClientOpening?) -> Void)]>([])

        var statuses: [Int] { self.asked.withLock { $0.map(\.status) } }

        func judge(_ head: ResponseHead, _ answer: @escaping @Sendable (ClientOpening?) -> Void) {
            self.asked.withLock { $0.append((head.status, answer)) }
        }

        func answer(_ opening: ClientOpening?) { self.asked.withLock { $0.last }?.answer(opening) }
    }

    private struct Meeting {
        let meeting: WebSocketMeeting
        let bench = JudgeRecorder()
        let diary = WebSocketDiary()
        let task: WebSocketTask

        init(_ kind: TransportTestbed.Kind) throws {
            let meeting = try WebSocketMeeting(kind)
            self.meeting = meeting
            self.task = WebSocketTask(opening: nil, on: meeting.meeting.loop)
            self.diary.watchEnd(self.task)
        }

        func opening(_ target: String) -> ClientOpening {
            var opening = ClientOpening(
                target: OpeningTarget(.address(self.meeting.meeting.peers.address)),
                handshake: ClientHandshake(authority: "server.test", target: target))
            opening.judge = { [bench] in bench.judge($0, $1) }
            return opening
        }

        /// The peer that was asked last, of `count` in all.
        func asked(_ count: Int) throws -> ScriptedPeer {
            let peers = self.meeting.meeting.peers
            #expect(
                self.meeting.run {
                    peers.accepted.count == count
                        && peers.accepted.last?.received.suffix(4) == Array("\r\n\r\n".utf8)[...]
                })
            return try #require(peers.accepted.last)
        }
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func redirectedOpeningKeepsAllThatIsQueued(_ kind: TransportTestbed.Kind) throws {
        let meeting = try Meeting(kind)
        meeting.meeting.perform {
            meeting.diary.send(meeting.task, "early")
            meeting.diary.receive(meeting.task, "r")
            meeting.task.open(meeting.opening("/old"))
        }
        let first = try meeting.asked(1)
        first.send("HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: 5\r\n\r\nmoved")
        #expect(meeting.meeting.run { meeting.bench.statuses == [302] })
        meeting.bench.answer(meeting.opening("/new"))
        let second = try meeting.asked(2)
        #expect(String(decoding: second.received, as: UTF8.self).hasPrefix("GET /new "))
        second.send(RawWebSocketPeer.response(to: second.takeReceived(), accept: AcceptKey.value))
        let raw = RawWebSocketPeer(second, isClient: false)
        #expect(meeting.meeting.run { raw.frames.first?.payload == Array("early".utf8) })
        raw.send(1, "hello")
        #expect(meeting.meeting.run { meeting.diary.lines.contains("r:hello") })
        #expect(meeting.task.response?.status == 101 && meeting.diary.end == nil)
        meeting.meeting.perform { meeting.task.reset() }
        meeting.meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func refusedOpeningKeepsTheResponse(_ kind: TransportTestbed.Kind) throws {
        let meeting = try Meeting(kind)
        meeting.meeting.perform { meeting.task.open(meeting.opening("/")) }
        let peer = try meeting.asked(1)
        peer.send("HTTP/1.1 401 No\r\nContent-Length: 7\r\n\r\nbe")
        #expect(meeting.meeting.run { meeting.bench.statuses == [401] })
        peer.send("cause")
        meeting.meeting.meeting.settle()
        #expect(meeting.diary.end == nil && meeting.task.responseBody.isEmpty)
        meeting.bench.answer(nil)
        #expect(meeting.meeting.run { meeting.diary.end != nil })
        #expect(meeting.diary.end?.failure == .handshakeRefused(status: 401))
        #expect(meeting.task.responseBody == Array("because".utf8))
        meeting.meeting.finish()
    }

    @Test func refusalIsJudgedThoughTheServerLeaves() throws {
        for (leave, answers) in [(true, true), (true, false), (false, false)] {
            let meeting = try Meeting(.simulation)
            meeting.meeting.perform { meeting.task.open(meeting.opening("/")) }
            let peer = try meeting.asked(1)
            peer.send("HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n")
            #expect(meeting.meeting.run { meeting.bench.statuses == [401] })
            if leave { peer.reset() }
            // A judge has no time limit.
            #expect(!meeting.meeting.run(atMost: .seconds(60)) { meeting.diary.end != nil })
            meeting.bench.answer(answers ? meeting.opening("/again") : nil)
            if answers {
                _ = try meeting.asked(2)
                meeting.meeting.perform { meeting.task.cancelOnLoop() }
            } else {
                // The rest of a body is not waited for as long as for an answer.
                #expect(meeting.meeting.run(atMost: .seconds(2)) { meeting.diary.end != nil })
                #expect(meeting.diary.end?.failure == .handshakeRefused(status: 401))
            }
            meeting.meeting.finish()
        }
    }

    @Test func judgedOpeningCanBeCancelled() throws {
        let meeting = try Meeting(.simulation)
        meeting.meeting.perform { meeting.task.open(meeting.opening("/")) }
        let peer = try meeting.asked(1)
        peer.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
        #expect(meeting.meeting.run { meeting.bench.statuses == [401] })
        meeting.meeting.perform { meeting.task.cancelOnLoop() }
        #expect(meeting.diary.end?.failure == .cancelled)
        meeting.bench.answer(meeting.opening("/late"))
        meeting.meeting.meeting.settle()
        #expect(meeting.meeting.meeting.peers.accepted.count == 1)
        meeting.meeting.finish()
    }

    @Test func openingStepsAreReportedInOrder() throws {
        let meeting = try Meeting(.simulation)
        let steps = Mutex<[String]>([])
        let log: @Sendable (OpeningStep) -> Void = { step in
            let word =
                switch step {
                case .began(_, let isProxied): "began \(isProxied)"
                case .resolved: "resolved"
                case .connected(let local, let peer): "connected \(local != nil) \(peer != nil)"
                case .took: "took"
                case .waiting: "waiting"
                case .securedProxy: "securedProxy"
                case .tunnelled: "tunnelled"
                case .securing: "securing"
                case .secured: "secured"
                case .requested(let bytes): "requested \(bytes > 100)"
                case .answered(let bytes): "answered \(bytes)"
                case .failed(let failure): "failed \(failure)"
                }
            steps.withLock { $0.append(word) }
        }
        var opening = meeting.opening("/")
        opening.target.watch = log
        meeting.meeting.perform { meeting.task.open(opening) }
        let peer = try meeting.asked(1)
        peer.send("HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 404 No\r\n")
        meeting.meeting.meeting.settle()
        peer.send("Content-Length: 0\r\n\r\n")
        #expect(meeting.meeting.run { meeting.bench.statuses == [404] })
        #expect(steps.withLock { $0 } == ["began false", "connected true true", "requested true", "answered 59"])
        meeting.bench.answer(nil)
        #expect(meeting.meeting.run { meeting.diary.end != nil })
        meeting.meeting.finish()
    }
}
