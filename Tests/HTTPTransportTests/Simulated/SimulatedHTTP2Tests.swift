import ByteKernels
import HTTP2Engine
import HTTPTransport
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing
import WireText

/// Time is virtual here: timeouts take no time, and are exact.
@Suite("HTTP/2 exchanges on the simulated network")
struct SimulatedHTTP2Tests {
    /// A pool, and a server that answers each request with `body`, unless that is `nil`.
    private final class Scene {
        let ground: TransportTestbed
        let pool: ConnectionPool
        let listener: ScriptedListener
        private let body: [UInt8]?
        private var engines: [ObjectIdentifier: HTTP2Connection] = [:]
        private let settings: HTTP2Settings

        init(
            _ body: [UInt8]?, seed: UInt64 = 1, faults: FaultPlan = .calm, limit: Int = 6,
            settings: HTTP2Settings = HTTP2Settings()
        ) throws {
            self.ground = TransportTestbed(.simulation, seed: seed, faults: faults)
            self.body = body
            self.settings = settings
            var settings = PoolSettings()
            settings.connectionsPerHost = limit
            self.pool = ConnectionPool(settings: settings, on: try self.ground.makeLoop())
            self.listener = try self.ground.makeHost().listen(at: .ipv4(address: 0x7F00_0001, port: 0))
        }

        func begin(_ method: String = "GET", pull: Int = .max) -> (Exchange, Diary) {
            let origin = ServerEndpoint(.http, host: "127.0.0.1", port: self.listener.address.port)
            var request = ExchangeRequest(origin, head: RequestHead(method: method, target: "/"))
            request.assumesHTTP2 = true
            let diary = Diary()
            let exchange = self.pool.exchange(request, consumer: diary)
            diary.pull(pull, exchange)
            exchange.start()
            return (exchange, diary)
        }

        /// Serves requests until `condition` holds.
        func run(atMost limit: Duration = .seconds(3600), until condition: () -> Bool) -> Bool {
            self.ground.run(
                until: {
                    self.answer()
                    return condition()
                }, atMost: limit)
        }

        func run(for duration: Duration) {
            _ = self.run(atMost: duration) { false }
        }

        private func answer() {
            guard let body = self.body else { return }
            for peer in self.listener.accepted {
                guard let engine = self.engine(of: peer) else { continue }
                let input = peer.takeReceived()
                var offset = 0
                while let event = engine.nextEvent(in: input.span.bytes, from: &offset) {
                    guard case .head(let stream, _, _) = event else { continue }
                    try? engine.respond(stream, HTTP2FieldBlock([(":status", "200")]), endsOutput: false)
                    _ = try? engine.send(stream, body.span.bytes)
                    try? engine.endOutput(stream)
                }
                engine.write {
                    peer.send([UInt8]($0))
                    return true
                }
            }
        }

        private func engine(of peer: ScriptedPeer) -> HTTP2Connection? {
            let key = ObjectIdentifier(peer)
            if self.engines[key] == nil { self.engines[key] = try? HTTP2Connection(.server, settings: self.settings) }
            return self.engines[key]
        }

        /// - Returns: misuses of descriptors.
        func end() -> [String] {
            self.pool.close()
            self.ground.settle()
            return self.ground.close()
        }
    }

    @Test func silentServerEndsTheExchangeAfterTheSettingsTimeout() throws {
        let scene = try Scene(nil)
        let (_, diary) = scene.begin()
        scene.run(for: .seconds(29))
        #expect(diary.now.ends == 0)
        scene.run(for: .seconds(2))
        #expect(diary.now.failure == .http2(.settingsTimeout))
        #expect(scene.end() == [])
    }

    @Test func idleTimeoutDoesNotRunWhileTheConsumerIsSlow() throws {
        let content = [UInt8](repeating: 7, count: 600_000)
        let scene = try Scene(content)
        let (exchange, diary) = scene.begin(pull: 0)
        scene.run(for: .seconds(600))
        #expect(diary.now.head?.status == 200 && diary.now.content.isEmpty && diary.now.ends == 0)
        diary.pull(.max, exchange)
        #expect(scene.run { diary.now.ends == 1 })
        #expect(diary.now.content == content)
        #expect(scene.end() == [])
    }

    @Test func idleConnectionIsClosedAfterItsTimeout() throws {
        let scene = try Scene([1])
        let (_, diary) = scene.begin()
        #expect(scene.run { diary.now.ends == 1 })
        scene.run(for: .seconds(59))
        #expect(scene.listener.accepted.map(\.sawEnd) == [false])
        scene.run(for: .seconds(2))
        #expect(scene.listener.accepted.map(\.sawEnd) == [true])
        #expect(scene.end() == [])
    }

    /// Short reads and writes, small buffers, stalls, resets, failing connects, no descriptors.
    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func everyExchangeEndsOnceCompleteOrWithAReason(_ seed: UInt64) throws {
        let content = (0..<30_000).map { UInt8(truncatingIfNeeded: $0) }
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = 3
        let scene = try Scene(content, seed: seed, faults: .rough, limit: 2, settings: settings)
        let diaries = (0..<12).map { scene.begin($0 % 3 == 0 ? "POST" : "GET").1 }
        #expect(scene.run { diaries.allSatisfy { $0.now.ends == 1 } }, "\(scene.ground.report)")
        for diary in diaries.map(\.now) {
            #expect(diary.ends == 1)
            #expect(diary.failure != nil || diary.content == content, "\(scene.ground.report)")
            #expect(content.starts(with: diary.content))
        }
        #expect(scene.end() == [])
    }
}
