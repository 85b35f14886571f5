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
    private final class Harness {
        let base: TaskHarness
        let task: StreamTask
        let recorder = TaskRecorder()

        init(
            _ kind: TransportTestbed.Kind, _ method: ProxyServer.Method,
            to place: ConnectTarget = .host("origin.test", port: 443),
            _ change: (inout OpeningTarget) -> Void = { _ in }
        ) throws {
            let harness = try TaskHarness(kind)
            self.base = harness
            var target = OpeningTarget(place)
            target.connectTimeout = .seconds(2)
            target.proxy = ProxyServer(.address(harness.peers.address), method)
            change(&target)
            self.task = StreamTask(to: target, on: harness.loop)
            self.recorder.watchEnd(self.task)
            harness.perform { [task, recorder] in
                recorder.read(task, "r", 1, 99)
                task.resumeOnLoop()
            }
        }

        func proxy(_ count: Int = 1, hasReceived bytes: [UInt8]) throws -> ScriptedPeer {
            let peers = self.base.peers
            #expect(self.base.run { peers.accepted.count == count && peers.accepted.last?.received == bytes })
            return try #require(peers.accepted.last)
        }

        var failure: ProxyFailure? {
            guard case .cannotConnect(let error)? = self.recorder.end ?? nil else { return nil }
            return error.transportFailure?.proxyFailure
        }

        func finish(sourceLocation: SourceLocation = #_sourceLocation) {
            self.base.perform { [task] in task.cancelOnLoop() }
            self.base.finish(sourceLocation: sourceLocation)
        }
    }

    private static let connect = Array("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n".utf8)

    @Test(arguments: TransportTestbed.Kind.allCases)
    func bytesAfterTheProxysResponseAreTheServers(_ kind: TransportTestbed.Kind) throws {
        let harness = try Harness(kind, .connect)
        let proxy = try harness.proxy(hasReceived: Self.connect)
        #expect(harness.task.record.openedAt == nil)
        proxy.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(harness.base.run { harness.recorder.lines.contains { $0.contains("hello") } })
        harness.finish()
    }

    @Test(arguments: TransportTestbed.Kind.allCases)
    func socksProxyGetsTheName(_ kind: TransportTestbed.Kind) throws {
        let harness = try Harness(kind, .socks5(nil))
        let proxy = try harness.proxy(hasReceived: [5, 1, 0])
        proxy.send([5, 0])
        _ = try harness.proxy(
            hasReceived: [5, 1, 0, 5, 1, 0, 3, 11] + Array("origin.test".utf8) + [1, 187])
        proxy.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0] + Array("hello".utf8))
        #expect(harness.base.run { harness.recorder.lines.contains { $0.contains("hello") } })
        harness.finish()
    }

    @Test func nameIsResolvedHereIfTheProxyDoesNot() throws {
        let harness = try Harness(.simulation, .socks4(user: "")) {
            $0.proxy?.resolvesNames = false
            $0.resolve = { _, port, answer in
                answer(
                    .success([.ipv6(high: 1, low: 1, scope: 0, port: port), .ipv4(address: 0xC000_0201, port: port)]))
            }
        }
        let proxy = try harness.proxy(hasReceived: [4, 1, 1, 187, 192, 0, 2, 1, 0])
        proxy.send([0, 90, 0, 0, 0, 0, 0, 0] + Array("hello".utf8))
        #expect(harness.base.run { harness.recorder.lines.contains { $0.contains("hello") } })
        harness.finish()
    }

    @Test func addressesOfTheServerNeedPermissionIfResolvedHere() throws {
        let harness = try Harness(.simulation, .socks5(nil)) {
            $0.proxy?.resolvesNames = false
            $0.permits = { _ in false }
            $0.resolve = { _, port, answer in answer(.success([.ipv4(address: 0xC000_0201, port: port)])) }
        }
        #expect(harness.base.run { harness.recorder.end != nil })
        #expect(harness.base.peers.accepted.isEmpty)
        harness.finish()
    }

    /// The text comes within a second, or not at all: the time to connect does not count.
    @Test(arguments: ["Content-Length: 99\r\n", "Content-Length: 9\r\n", ""])
    func refusalEndsTheTaskWithoutTheRestOfItsText(_ length: String) throws {
        let harness = try Harness(.simulation, .connect) { $0.connectTimeout = .seconds(60) }
        let proxy = try harness.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\(length)\r\nnot here")
        #expect(harness.base.run(atMost: .seconds(2)) { harness.recorder.end != nil })
        guard case .refused(let head, "not here")? = harness.failure else {
            Issue.record("ended with \(String(describing: harness.recorder.end))")
            return
        }
        #expect(head.status == 403)
        harness.finish()
    }

    @Test func textOfARefusalTakesNoLongerThanTheHandshakeMay() throws {
        let harness = try Harness(.simulation, .connect) { $0.connectTimeout = .milliseconds(200) }
        let proxy = try harness.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n\r\nnot here")
        #expect(harness.base.run(atMost: .milliseconds(500)) { harness.recorder.end != nil })
        if case .refused? = harness.failure {} else { Issue.record("\(String(describing: harness.recorder.end))") }
        harness.finish()
    }

    /// The content of the 407 does not end: the authentication begins anew on another connection.
    @Test func contentThatDoesNotEndCostsTheConnection() throws {
        let kept = Mutex<[Bool?]>([])
        let harness = try Harness(.simulation, .connect) {
            $0.connectTimeout = .seconds(60)
            $0.proxy?.authorize = { challenge, completion in
                kept.withLock { $0.append(challenge?.keepsConnection) }
                completion([])
            }
        }
        let proxy = try harness.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: NTLM YWJj\r\nContent-Length: 9\r\n\r\nno")
        let peers = harness.base.peers
        #expect(
            harness.base.run(atMost: .seconds(2)) {
                peers.accepted.count == 2 && peers.accepted.last?.received == Self.connect
            })
        #expect(kept.withLock { $0 } == [nil, false])
        harness.finish()
    }

    /// Only the content is hurried; the answer to the repeated request has all of the time.
    @Test func repeatedRequestHasTheTimeOfTheHandshake() throws {
        let harness = try Harness(.simulation, .connect) {
            $0.connectTimeout = .seconds(60)
            $0.proxy?.authorize = { _, completion in completion([]) }
        }
        let proxy = try harness.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: NTLM YWJj\r\nContent-Length: 2\r\n\r\nn")
        harness.base.settle()
        proxy.send("o")
        let same = try harness.proxy(hasReceived: Self.connect + Self.connect)
        #expect(!harness.base.run(atMost: .seconds(30)) { harness.recorder.end != nil })
        same.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(harness.base.run { harness.recorder.lines.contains { $0.contains("hello") } })
        harness.finish()
    }

    @Test func silentProxyFailsTheTask() throws {
        let harness = try Harness(.simulation, .connect)
        let proxy = try harness.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 200")
        #expect(harness.base.run(atMost: .seconds(10)) { harness.recorder.end != nil })
        #expect(harness.failure == .timedOut)
        harness.finish()
    }

    @Test func closingProxyFailsTheTask() throws {
        let harness = try Harness(.simulation, .socks5(nil))
        let proxy = try harness.proxy(hasReceived: [5, 1, 0])
        proxy.finish()
        #expect(harness.base.run { harness.recorder.end != nil })
        #expect(harness.failure == .closed)
        harness.finish()
    }

    @Test func unreachableProxyIsNamed() throws {
        let harness = try Harness(.simulation, .connect) {
            $0.proxy?.place = .address(.ipv4(address: 0x7f00_0001, port: 9))
        }
        #expect(harness.base.run { harness.recorder.end != nil })
        #expect(harness.failure == .connection(.refused))
        harness.finish()
    }

    @Test func nothingIsSentForAnInexpressibleTarget() throws {
        let harness = try Harness(.simulation, .connect, to: .host("a b", port: 1))
        #expect(harness.base.run { harness.recorder.end != nil })
        if case .inexpressible? = harness.failure {
        } else {
            Issue.record("\(String(describing: harness.recorder.end))")
        }
        #expect(harness.base.peers.accepted.isEmpty)
        harness.finish()
    }

    @Test func cancellingEndsTheHandshake() throws {
        let harness = try Harness(.simulation, .connect)
        _ = try harness.proxy(hasReceived: Self.connect)
        harness.base.perform { [task = harness.task] in task.cancelOnLoop() }
        #expect(harness.base.run { harness.recorder.end == .some(.cancelled) })
        harness.finish()
    }

    @Test func challengeIsAnsweredOnAnotherConnection() throws {
        let refusals = Mutex<[Int?]>([])
        let harness = try Harness(.simulation, .connect) {
            $0.proxy?.authorize = { refusal, completion in
                refusals.withLock { $0.append(refusal?.head.status) }
                completion(refusal == nil ? [] : [FieldLine("Proxy-Authorization", "Basic eA==")])
            }
        }
        let first = try harness.proxy(hasReceived: Self.connect)
        first.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 2\r\n\r\nno")
        let authorized = Self.connect.dropLast(2) + Array("Proxy-Authorization: Basic eA==\r\n\r\n".utf8)
        let second = try harness.proxy(2, hasReceived: Array(authorized))
        second.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(harness.base.run { harness.recorder.lines.contains { $0.contains("hello") } })
        #expect(refusals.withLock { $0 } == [nil, 407])
        harness.finish()
    }

    @Test func continuedAuthenticationStaysOnTheConnection() throws {
        let kept = Mutex<[Bool?]>([])
        let harness = try Harness(.simulation, .connect) {
            $0.proxy?.authorize = { challenge, completion in
                kept.withLock { $0.append(challenge?.keepsConnection) }
                completion(challenge == nil ? [] : [FieldLine("Proxy-Authorization", "NTLM eHl6")])
            }
        }
        let proxy = try harness.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: NTLM YWJj\r\nContent-Length: 2\r\n\r\nno")
        let authorized = Self.connect.dropLast(2) + Array("Proxy-Authorization: NTLM eHl6\r\n\r\n".utf8)
        let same = try harness.proxy(hasReceived: Self.connect + authorized)
        same.send("HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(harness.base.run { harness.recorder.lines.contains { $0.contains("hello") } })
        #expect(kept.withLock { $0 } == [nil, true])
        harness.finish()
    }

    @Test func unansweredChallengeIsTheFailure() throws {
        let harness = try Harness(.simulation, .connect) {
            $0.proxy?.authorize = { refusal, completion in completion(refusal == nil ? [] : nil) }
        }
        let proxy = try harness.proxy(hasReceived: Self.connect)
        proxy.send("HTTP/1.1 407 Who\r\n\r\n")
        #expect(harness.base.run { harness.recorder.end != nil })
        if case .refused? = harness.failure {} else { Issue.record("\(String(describing: harness.recorder.end))") }
        harness.finish()
    }
}
