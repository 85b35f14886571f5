import HTTPTransport
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WireText

/// Time is virtual here: timeouts take no time, and are exact.
@Suite("Exchanges on the simulated network")
struct SimulatedExchangeTests {
    /// A pool, and a server that answers each request with `response`, unless that is `nil`.
    private final class Scene {
        let testbed: TransportTestbed
        let pool: ConnectionPool
        let listener: ScriptedListener
        var response: String?
        private var answered: [ObjectIdentifier: Int] = [:]

        init(_ response: String?, seed: UInt64 = 1, faults: FaultPlan = .calm, limit: Int = 6) throws {
            self.testbed = TransportTestbed(.simulation, seed: seed, faults: faults)
            self.response = response
            var settings = PoolSettings()
            settings.connectionsPerHost = limit
            self.pool = ConnectionPool(settings: settings, on: try self.testbed.makeLoop())
            self.listener = try self.testbed.makeHost().listen(at: .ipv4(address: 0x7F00_0001, port: 0))
        }

        func begin(
            _ method: String = "GET", body: RequestBody = .none, pull: Int = .max
        ) -> (Exchange, ExchangeRecorder) {
            let origin = ServerEndpoint(.http, host: "127.0.0.1", port: self.listener.address.port)
            let recorder = ExchangeRecorder()
            var request = ExchangeRequest(origin, head: RequestHead(method: method, target: "/"))
            request.body = body
            let exchange = self.pool.exchange(request, consumer: recorder)
            recorder.pull(pull, exchange)
            exchange.start()
            return (exchange, recorder)
        }

        /// Serves requests until `condition` holds.
        func run(atMost limit: Duration = .seconds(3600), until condition: () -> Bool) -> Bool {
            self.testbed.run(
                until: {
                    self.answer()
                    return condition()
                }, atMost: limit)
        }

        func run(for duration: Duration) {
            _ = self.run(atMost: duration) { false }
        }

        private func answer() {
            guard let response = self.response else { return }
            for peer in self.listener.accepted {
                let requests = String(decoding: peer.received, as: UTF8.self).ranges(of: "\r\n\r\n").count
                while self.answered[ObjectIdentifier(peer), default: 0] < requests {
                    self.answered[ObjectIdentifier(peer), default: 0] += 1
                    peer.send(response)
                }
            }
        }

        /// Requests that were answered.
        var answerCount: Int { self.answered.values.reduce(0, +) }

        /// - Returns: misuses of descriptors.
        func end() -> [String] {
            self.pool.close()
            self.testbed.settle()
            return self.testbed.close()
        }
    }

    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    @Test func silentServerEndsTheExchangeAfterTheIdleTimeout() throws {
        let scene = try Scene(nil)
        let (_, recorder) = scene.begin()
        scene.run(for: .seconds(59))
        #expect(recorder.now.ends == 0)
        scene.run(for: .seconds(2))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    @Test func idleTimeoutDoesNotRunWhileTheConsumerIsSlow() throws {
        let content = String(repeating: "x", count: 600_000)
        let scene = try Scene("HTTP/1.1 200 OK\r\nContent-Length: 600000\r\n\r\n" + content)
        let (exchange, recorder) = scene.begin(pull: 0)
        scene.run(for: .seconds(600))
        #expect(recorder.now.head?.status == 200 && recorder.now.content.isEmpty && recorder.now.ends == 0)
        recorder.pull(.max, exchange)
        #expect(scene.run { recorder.now.ends == 1 })
        #expect(recorder.now.text == content)
        #expect(scene.end() == [])
    }

    @Test func idleTimeoutBeginsAnewWhenTheConsumerWantsContent() throws {
        let scene = try Scene("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        let (exchange, recorder) = scene.begin(pull: 0)
        scene.run(for: .seconds(50))
        recorder.pull(.max, exchange)
        scene.run(for: .seconds(59))
        #expect(recorder.now.head?.status == 200 && recorder.now.ends == 0)
        scene.run(for: .seconds(2))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    @Test func suspensionDoesNotCountAsIdle() throws {
        let scene = try Scene(nil)
        let (exchange, recorder) = scene.begin()
        scene.run(for: .seconds(1))
        recorder.suspend(exchange)
        scene.run(for: .seconds(50))
        recorder.resume(exchange)
        scene.run(for: .seconds(59))
        #expect(recorder.now.ends == 0)
        scene.run(for: .seconds(2))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    @Test func suspensionDoesNotCountAsConnecting() throws {
        let scene = try Scene(Self.ok)
        try #require(scene.testbed.network).connectScripts[scene.listener.address] = .hangs
        let (exchange, recorder) = scene.begin()
        scene.run(for: .seconds(1))
        recorder.suspend(exchange)
        scene.run(for: .seconds(50))
        recorder.resume(exchange)
        scene.run(for: .seconds(58))
        #expect(recorder.now.ends == 0)
        #expect(scene.run(atMost: .seconds(2)) { recorder.now.ends == 1 })
        #expect(recorder.now.failure == .connecting(.deadlinePassed(.connecting)))
        #expect(scene.end() == [])
    }

    // MARK: Suspended before the request is sent

    @Test func suspendedExchangeGivesItsTurnToOthers() throws {
        let scene = try Scene(nil, limit: 1)
        let (_, first) = scene.begin()
        #expect(scene.run { scene.listener.accepted.first?.received.isEmpty == false })
        let (exchange, suspended) = scene.begin()
        let (_, third) = scene.begin()
        scene.run(for: .seconds(1))
        suspended.suspend(exchange)
        scene.response = Self.ok
        #expect(scene.run(atMost: .seconds(5)) { third.now.text == "ok" })
        scene.run(for: .seconds(50))
        #expect(first.now.text == "ok" && suspended.now.connections.isEmpty && scene.answerCount == 2)
        suspended.resume(exchange)
        #expect(scene.run(atMost: .seconds(5)) { suspended.now.text == "ok" })
        #expect(scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    @Test func connectionThatASuspendedExchangeOpensServesOthers() throws {
        let scene = try Scene(Self.ok, limit: 1)
        try #require(scene.testbed.network).connectScripts[scene.listener.address] = .delayed(.seconds(2))
        let (exchange, suspended) = scene.begin()
        scene.run(for: .seconds(1))
        suspended.suspend(exchange)
        scene.run(for: .seconds(5))
        #expect(scene.listener.accepted.count == 1 && suspended.now.connections.isEmpty)
        let (_, other) = scene.begin()
        #expect(scene.run(atMost: .seconds(5)) { other.now.text == "ok" })
        #expect(suspended.now.connections.isEmpty && scene.answerCount == 1)
        suspended.resume(exchange)
        #expect(scene.run(atMost: .seconds(5)) { suspended.now.text == "ok" })
        #expect(scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    @Test func openingOfASuspendedExchangeKeepsItsPlaceForItsTimeoutOnly() throws {
        let scene = try Scene(Self.ok, limit: 1)
        let network = try #require(scene.testbed.network)
        network.connectScripts[scene.listener.address] = .hangs
        let (exchange, suspended) = scene.begin()
        scene.run(for: .seconds(1))
        suspended.suspend(exchange)
        network.connectScripts = [:]
        let (_, other) = scene.begin()
        scene.run(for: .seconds(58))
        #expect(other.now.connections.isEmpty)
        #expect(scene.run(atMost: .seconds(5)) { other.now.text == "ok" })
        scene.run(for: .seconds(30))
        #expect(suspended.now.ends == 0)
        suspended.resume(exchange)
        #expect(scene.run(atMost: .seconds(5)) { suspended.now.text == "ok" })
        #expect(scene.listener.accepted.count == 1)
        #expect(scene.end() == [])
    }

    @Test func exchangeSuspendedBeforeItsRequestCanBeCancelled() throws {
        let scene = try Scene(Self.ok)
        let (exchange, suspended) = scene.begin()
        suspended.suspend(exchange)
        scene.run(for: .seconds(100))
        #expect(suspended.now.ends == 0 && scene.listener.accepted.isEmpty)
        exchange.cancel()
        scene.run(for: .seconds(1))
        #expect(suspended.now.failure == .cancelled && suspended.now.ends == 1)
        #expect(scene.end() == [])
    }

    @Test func bodyThatNobodyTakesIsIdleAfterOneAndAHalfTimeouts() throws {
        let scene = try Scene(nil)
        let (_, recorder) = scene.begin("PUT", body: .bytes([UInt8](repeating: 1, count: 350_000)))
        #expect(scene.run { !scene.listener.accepted.isEmpty })
        scene.listener.accepted[0].isReading = false
        scene.run(for: .seconds(57))
        #expect(recorder.now.ends == 0)
        scene.run(for: .seconds(35))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    /// The kernels' buffers hold the whole body, which takes minutes to arrive.
    @Test func bodyThatTheKernelStillSendsIsNotIdle() throws {
        let scene = try Scene(nil)
        let (_, recorder) = scene.begin("PUT", body: .bytes([UInt8](repeating: 1, count: 350_000)))
        #expect(scene.run { !scene.listener.accepted.isEmpty })
        let peer = scene.listener.accepted[0]
        peer.isReading = false
        peer.readLimit = 40_000
        scene.run(for: .seconds(1))
        #expect(recorder.now.sent == 350_000)
        for _ in 0..<4 {
            let arrived = peer.received.count
            peer.isReading = true
            #expect(scene.run { peer.received.count > arrived })
            peer.isReading = false
            scene.run(for: .seconds(50))
            #expect(recorder.now.ends == 0)
        }
        // Nothing arrives any more.
        scene.run(for: .seconds(120))
        #expect(recorder.now.failure == .idle)
        #expect(scene.end() == [])
    }

    @Test func idleConnectionIsClosedAfterItsTimeout() throws {
        let scene = try Scene(Self.ok)
        let (_, recorder) = scene.begin()
        #expect(scene.run { recorder.now.ends == 1 })
        scene.run(for: .seconds(59))
        #expect(scene.listener.accepted.map(\.sawEnd) == [false])
        scene.run(for: .seconds(2))
        #expect(scene.listener.accepted.map(\.sawEnd) == [true])
        #expect(scene.end() == [])
    }

    @Test func requestThatCannotBeRepeatedUsesAConnectionThatStayedOpen() throws {
        let scene = try Scene(Self.ok)
        for (pause, connections) in [(Duration.zero, 1), (.milliseconds(99), 2), (.milliseconds(100), 2)] {
            scene.run(for: pause)
            let (_, recorder) = scene.begin("POST")
            #expect(scene.run { recorder.now.ends == 1 })
            #expect(recorder.now.text == "ok")
            #expect(scene.listener.accepted.count == connections)
        }
        #expect(scene.end() == [])
    }

    /// Short reads and writes, small buffers, stalls, resets, failing connects, no descriptors, slow consumers.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func everyExchangeEndsOnceCompleteOrWithAReason(_ seed: UInt64) throws {
        let content = String(repeating: "0123456789", count: 3_000)
        let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7530\r\n\(content)\r\n0\r\n\r\n"
        var faults = FaultPlan.rough
        faults.reset = 0.5
        faults.refusedConnect = 0.1
        let scene = try Scene(response, seed: seed, faults: faults, limit: 2)
        let exchanges = (0..<12).map { scene.begin($0 % 3 == 0 ? "POST" : "GET", pull: $0 % 2 == 0 ? .max : 0) }
        let haveEnded = scene.run {
            for (exchange, recorder) in exchanges where recorder.demand == .bytes(0) { recorder.pull(1_000, exchange) }
            return exchanges.allSatisfy { $0.1.now.ends == 1 }
        }
        #expect(haveEnded, "\(scene.testbed.report)")
        for recorder in exchanges.map(\.1.now) {
            #expect(recorder.failure != nil || recorder.text == content, "\(scene.testbed.report)")
            #expect(content.hasPrefix(recorder.text))
        }
        #expect(scene.end() == [])
        #expect(exchanges.allSatisfy { $0.1.now.ends == 1 })
    }
}
