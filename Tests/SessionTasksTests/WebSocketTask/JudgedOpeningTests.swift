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

    private struct Harness {
        let base: WebSocketHarness
        let judge = JudgeRecorder()
        let recorder = WebSocketRecorder()
        let task: WebSocketTask

        init(_ kind: TransportTestbed.Kind) throws {
            let harness = try WebSocketHarness(kind)
            self.base = harness
            self.task = WebSocketTask(opening: nil, on: harness.base.loop)
            self.recorder.watchEnd(self.task)
        }

        func opening(_ target: String) -> ClientOpening {
            var opening = ClientOpening(
                target: OpeningTarget(.address(self.base.base.peers.address)),
                handshake: ClientHandshake(authority: "server.test", target: target))
            opening.judge = { [judge] in judge.judge($0, $1) }
            return opening
        }

        /// The peer that was asked last, of `count` in all.
        func asked(_ count: Int) throws -> ScriptedPeer {
            let peers = self.base.base.peers
            #expect(
                self.base.run {
                    peers.accepted.count == count
                        && peers.accepted.last?.received.suffix(4) == Array("\r\n\r\n".utf8)[...]
                })
            return try #require(peers.accepted.last)
        }
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func redirectedOpeningKeepsAllThatIsQueued(_ kind: TransportTestbed.Kind) throws {
        let harness = try Harness(kind)
        harness.base.perform {
            harness.recorder.send(harness.task, "early")
            harness.recorder.receive(harness.task, "r")
            harness.task.open(harness.opening("/old"))
        }
        let first = try harness.asked(1)
        first.send("HTTP/1.1 302 Found\r\nLocation: /new\r\nContent-Length: 5\r\n\r\nmoved")
        #expect(harness.base.run { harness.judge.statuses == [302] })
        harness.judge.answer(harness.opening("/new"))
        let second = try harness.asked(2)
        #expect(String(decoding: second.received, as: UTF8.self).hasPrefix("GET /new "))
        second.send(RawWebSocketPeer.response(to: second.takeReceived(), accept: AcceptKey.value))
        let raw = RawWebSocketPeer(second, isClient: false)
        #expect(harness.base.run { raw.frames.first?.payload == Array("early".utf8) })
        raw.send(1, "hello")
        #expect(harness.base.run { harness.recorder.lines.contains("r:hello") })
        #expect(harness.task.response?.status == 101 && harness.recorder.end == nil)
        harness.base.perform { harness.task.reset() }
        harness.base.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func refusedOpeningKeepsTheResponse(_ kind: TransportTestbed.Kind) throws {
        let harness = try Harness(kind)
        harness.base.perform { harness.task.open(harness.opening("/")) }
        let peer = try harness.asked(1)
        peer.send("HTTP/1.1 401 No\r\nContent-Length: 7\r\n\r\nbe")
        #expect(harness.base.run { harness.judge.statuses == [401] })
        peer.send("cause")
        harness.base.base.settle()
        #expect(harness.recorder.end == nil && harness.task.responseBody.isEmpty)
        harness.judge.answer(nil)
        #expect(harness.base.run { harness.recorder.end != nil })
        #expect(harness.recorder.end?.failure == .handshakeRefused(status: 401))
        #expect(harness.task.responseBody == Array("because".utf8))
        harness.base.finish()
    }

    @Test func refusalIsJudgedThoughTheServerLeaves() throws {
        for (leave, answers) in [(true, true), (true, false), (false, false)] {
            let harness = try Harness(.simulation)
            harness.base.perform { harness.task.open(harness.opening("/")) }
            let peer = try harness.asked(1)
            peer.send("HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n")
            #expect(harness.base.run { harness.judge.statuses == [401] })
            if leave { peer.reset() }
            // A judge has no time limit.
            #expect(!harness.base.run(atMost: .seconds(60)) { harness.recorder.end != nil })
            harness.judge.answer(answers ? harness.opening("/again") : nil)
            if answers {
                _ = try harness.asked(2)
                harness.base.perform { harness.task.cancelOnLoop() }
            } else {
                // The rest of a body is not waited for as long as for an answer.
                #expect(harness.base.run(atMost: .seconds(2)) { harness.recorder.end != nil })
                #expect(harness.recorder.end?.failure == .handshakeRefused(status: 401))
            }
            harness.base.finish()
        }
    }

    @Test func judgedOpeningCanBeCancelled() throws {
        let harness = try Harness(.simulation)
        harness.base.perform { harness.task.open(harness.opening("/")) }
        let peer = try harness.asked(1)
        peer.send("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n")
        #expect(harness.base.run { harness.judge.statuses == [401] })
        harness.base.perform { harness.task.cancelOnLoop() }
        #expect(harness.recorder.end?.failure == .cancelled)
        harness.judge.answer(harness.opening("/late"))
        harness.base.base.settle()
        #expect(harness.base.base.peers.accepted.count == 1)
        harness.base.finish()
    }

    @Test func openingStepsAreReportedInOrder() throws {
        let harness = try Harness(.simulation)
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
        var opening = harness.opening("/")
        opening.target.watch = log
        harness.base.perform { harness.task.open(opening) }
        let peer = try harness.asked(1)
        peer.send("HTTP/1.1 102 Wait\r\n\r\nHTTP/1.1 404 No\r\n")
        harness.base.base.settle()
        peer.send("Content-Length: 0\r\n\r\n")
        #expect(harness.base.run { harness.judge.statuses == [404] })
        #expect(steps.withLock { $0 } == ["began false", "connected true true", "requested true", "answered 59"])
        harness.judge.answer(nil)
        #expect(harness.base.run { harness.recorder.end != nil })
        harness.base.finish()
    }
}
