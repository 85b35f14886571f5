import ByteKernels
import SessionTasks
import StreamTransport
import Synchronization
import TestSupport
import Testing
import WireText

@Suite("Openings through a proxy")
struct ProxiedOpeningTests {
    /// A stream task that is opened through a scripted proxy.
    private final class Meeting {
        let meeting: TaskMeeting
        let task: StreamTask
        let diary = TaskDiary()

        init(
            _ kind: TransportTestbed.Kind, _ method: ProxyServer.Method,
            to place: ConnectTarget = .host("origin.test", port: 443),
            _ change: (inout OpeningTarget) -> Void = { _ in }
        ) throws {
            let meeting = try TaskMeeting(kind)
            self.meeting = meeting
            var target = OpeningTarget(place)
            target.connectTimeout = .seconds(2)
            target.proxy = ProxyServer(.address(meeting.peers.address), method)
            change(&target)
            self.task = StreamTask(to: target, on: meeting.loop)
            self.diary.watchEnd(self.task)
            meeting.perform { [task, diary] in
                diary.read(task, "r", 1, 99)
                task.resumeOnLoop()
            }
        }

        func proxy(_ count: Int = 1, hasReceived bytes: [UInt8]) throws -> ScriptedPeer {
            let peers = self.meeting.peers
            #expect(self.meeting.run { peers.accepted.count == count && peers.accepted.last?.received == bytes })
            return try #require(peers.accepted.last)
        }

        var failure: ProxyFailure? {
            guard case .cannotConnect(let error)? = self.diary.end ?? nil else { return nil }
            return error.transportFailure?.proxyFailure
        }

        func finish(sourceLocation: SourceLocation = #_sourceLocation) {
            self.meeting.perform { [task] in task.cancelOnLoop() }
            self.meeting.finish(sourceLocation: sourceLocation)
        }
    }

    private static let connect = Array("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n".utf8)

    @Test(arguments: TransportTestbed.Kind.allCases)
    func bytesAfterTheProxysResponseAreTheServers(_ kind: TransportTestbed.Kind) throws {
        let meeting = try Meeting(kind, .connect)
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        #expect(meeting.task.record.openedAt == nil)
        proxy.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(meeting.meeting.run { meeting.diary.lines.contains { $0.contains("hello") } })
        meeting.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func socksProxyGetsTheName(_ kind: TransportTestbed.Kind) throws {
        let meeting = try Meeting(kind, .socks5(nil))
        let proxy = try meeting.proxy(hasReceived: [5, 1, 0])
        proxy.send([5, 0])
        _ = try meeting.proxy(
            hasReceived: [5, 1, 0, 5, 1, 0, 3, 11] + Array("origin.test".utf8) + [1, 187])
        proxy.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0] + Array("hello".utf8))
        #expect(meeting.meeting.run { meeting.diary.lines.contains { $0.contains("hello") } })
        meeting.finish()
    }

    @Test func nameIsResolvedHereIfTheProxyDoesNot() throws {
        let meeting = try Meeting(.simulation, .socks4(user: "")) {
            $0.proxy?.resolvesNames = false
            $0.resolve = { _, port, answer in
                answer(
                    .success([.ipv6(high: 1, low: 1, scope: 0, port: port), .ipv4(address: 0xC000_0201, port: port)]))
            }
        }
        let proxy = try meeting.proxy(hasReceived: [4, 1, 1, 187, 192, 0, 2, 1, 0])
        proxy.send([0, 90, 0, 0, 0, 0, 0, 0] + Array("hello".utf8))
        #expect(meeting.meeting.run { meeting.diary.lines.contains { $0.contains("hello") } })
        meeting.finish()
    }

    @Test func addressesOfTheServerNeedPermissionIfResolvedHere() throws {
        let meeting = try Meeting(.simulation, .socks5(nil)) {
            $0.proxy?.resolvesNames = false
            $0.permits = { _ in false }
            $0.resolve = { _, port, answer in answer(.success([.ipv4(address: 0xC000_0201, port: port)])) }
        }
        #expect(meeting.meeting.run { meeting.diary.end != nil })
        #expect(meeting.meeting.peers.accepted.isEmpty)
        meeting.finish()
    }

    /// The text comes within a second, or not at all: the time to connect does not count.
    @Test(arguments: ["Content-Length: 99\r\n", "Content-Length: 9\r\n", ""])
    func refusalEndsTheTaskWithoutTheRestOfItsText(_ length: String) throws {
        let meeting = try Meeting(.simulation, .connect) { $0.connectTimeout = .seconds(60) }
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\(length)\r\nnot here")
        #expect(meeting.meeting.run(atMost: .seconds(2)) { meeting.diary.end != nil })
        guard case .refused(let head, "not here")? = meeting.failure else {
            Issue.record("ended with \(String(describing: meeting.diary.end))")
            return
        }
        #expect(head.status == 403)
        meeting.finish()
    }

    @Test func textOfARefusalTakesNoLongerThanTheHandshakeMay() throws {
        let meeting = try Meeting(.simulation, .connect) { $0.connectTimeout = .milliseconds(200) }
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\nnot here")
        #expect(meeting.meeting.run(atMost: .milliseconds(500)) { meeting.diary.end != nil })
        if case .refused? = meeting.failure {} else { Issue.record("\(String(describing: meeting.diary.end))") }
        meeting.finish()
    }

    /// The content of the 407 does not end: the authentication begins anew on another connection.
    @Test func contentThatDoesNotEndCostsTheConnection() throws {
        let kept = Mutex<[Bool?]>([])
        let meeting = try Meeting(.simulation, .connect) {
            $0.connectTimeout = .seconds(60)
            $0.proxy?.authorize = { challenge, completion in
                kept.withLock { $0.append(challenge?.keepsConnection) }
                completion([])
            }
        }
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: NTLM YWJj\r\nContent-Length: 9\r\n\r\nno")
        let peers = meeting.meeting.peers
        #expect(
            meeting.meeting.run(atMost: .seconds(2)) {
                peers.accepted.count == 2 && peers.accepted.last?.received == Self.connect
            })
        #expect(kept.withLock { $0 } == [nil, false])
        meeting.finish()
    }

    /// Only the content is hurried; the answer to the repeated request has all of the time.
    @Test func repeatedRequestHasTheTimeOfTheHandshake() throws {
        let meeting = try Meeting(.simulation, .connect) {
            $0.connectTimeout = .seconds(60)
            $0.proxy?.authorize = { _, completion in completion([]) }
        }
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: NTLM YWJj\r\nContent-Length: 2\r\n\r\nn")
        meeting.meeting.settle()
        proxy.send("o")
        let same = try meeting.proxy(hasReceived: Self.connect + Self.connect)
        #expect(!meeting.meeting.run(atMost: .seconds(30)) { meeting.diary.end != nil })
        same.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(meeting.meeting.run { meeting.diary.lines.contains { $0.contains("hello") } })
        meeting.finish()
    }

    @Test func silentProxyFailsTheTask() throws {
        let meeting = try Meeting(.simulation, .connect)
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 200")
        #expect(meeting.meeting.run(atMost: .seconds(10)) { meeting.diary.end != nil })
        #expect(meeting.failure == .timedOut)
        meeting.finish()
    }

    @Test func closingProxyFailsTheTask() throws {
        let meeting = try Meeting(.simulation, .socks5(nil))
        let proxy = try meeting.proxy(hasReceived: [5, 1, 0])
        proxy.finish()
        #expect(meeting.meeting.run { meeting.diary.end != nil })
        #expect(meeting.failure == .closed)
        meeting.finish()
    }

    @Test func unreachableProxyIsNamed() throws {
        let meeting = try Meeting(.simulation, .connect) {
            $0.proxy?.place = .address(.ipv4(address: 0x7f00_0001, port: 9))
        }
        #expect(meeting.meeting.run { meeting.diary.end != nil })
        #expect(meeting.failure == .connection(.refused))
        meeting.finish()
    }

    @Test func nothingIsSentForAnInexpressibleTarget() throws {
        let meeting = try Meeting(.simulation, .connect, to: .host("a b", port: 1))
        #expect(meeting.meeting.run { meeting.diary.end != nil })
        if case .inexpressible? = meeting.failure {} else { Issue.record("\(String(describing: meeting.diary.end))") }
        #expect(meeting.meeting.peers.accepted.isEmpty)
        meeting.finish()
    }

    @Test func cancellingEndsTheHandshake() throws {
        let meeting = try Meeting(.simulation, .connect)
        _ = try meeting.proxy(hasReceived: Self.connect)
        meeting.meeting.perform { [task = meeting.task] in task.cancelOnLoop() }
        #expect(meeting.meeting.run { meeting.diary.end == .some(.cancelled) })
        meeting.finish()
    }

    @Test func challengeIsAnsweredOnAnotherConnection() throws {
        let refusals = Mutex<[Int?]>([])
        let meeting = try Meeting(.simulation, .connect) {
            $0.proxy?.authorize = { refusal, completion in
                refusals.withLock { $0.append(refusal?.head.status) }
                completion(refusal == nil ? [] : [FieldLine("Proxy-Authorization", "Basic eA==")])
            }
        }
        let first = try meeting.proxy(hasReceived: Self.connect)
        first.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 2\r\n\r\nno")
        let authorized = Self.connect.dropLast(2) + Array("Proxy-Authorization: Basic eA==\r\n\r\n".utf8)
        let second = try meeting.proxy(2, hasReceived: Array(authorized))
        second.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(meeting.meeting.run { meeting.diary.lines.contains { $0.contains("hello") } })
        #expect(refusals.withLock { $0 } == [nil, 407])
        meeting.finish()
    }

    @Test func continuedAuthenticationStaysOnTheConnection() throws {
        let kept = Mutex<[Bool?]>([])
        let meeting = try Meeting(.simulation, .connect) {
            $0.proxy?.authorize = { challenge, completion in
                kept.withLock { $0.append(challenge?.keepsConnection) }
                completion(challenge == nil ? [] : [FieldLine("Proxy-Authorization", "NTLM eHl6")])
            }
        }
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: NTLM YWJj\r\nContent-Length: 2\r\n\r\nno")
        let authorized = Self.connect.dropLast(2) + Array("Proxy-Authorization: NTLM eHl6\r\n\r\n".utf8)
        let same = try meeting.proxy(hasReceived: Self.connect + authorized)
        same.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(meeting.meeting.run { meeting.diary.lines.contains { $0.contains("hello") } })
        #expect(kept.withLock { $0 } == [nil, true])
        meeting.finish()
    }

    @Test func unansweredChallengeIsTheFailure() throws {
        let meeting = try Meeting(.simulation, .connect) {
            $0.proxy?.authorize = { refusal, completion in completion(refusal == nil ? [] : nil) }
        }
        let proxy = try meeting.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\n\r\n")
        #expect(meeting.meeting.run { meeting.diary.end != nil })
        if case .refused? = meeting.failure {} else { Issue.record("\(String(describing: meeting.diary.end))") }
        meeting.finish()
    }
}
