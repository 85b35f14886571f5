import HTTP2Engine
import HTTPTransport
import StreamTransport
import Synchronization
import TLSEngine
import Testing
import WireText

@Suite("Exchanges over HTTP/2, RFC 9113", .timeLimit(.minutes(20)))
struct MultiplexedExchangeTests {
    private let pool = ConnectionPool()

    private static func pool(limit: Int) -> ConnectionPool {
        var settings = PoolSettings()
        settings.connectionsPerHost = limit
        return ConnectionPool(settings: settings)
    }

    /// Responds to each request with its path.
    private static let echoesPaths: HTTP2Server.Script = { peer, event in
        guard case .head(let stream, let block, _) = event else { return }
        peer.respond(stream, 200, [("content-type", "text/plain")], Array(block.first(":path") ?? []))
    }

    private static func client() throws -> TLSContext {
        try SecureFixture.client { $0.applicationProtocols = ["h2", "http/1.1"] }
    }

    // MARK: Which protocol

    @Test func serverChoosesTheProtocolByALPN() async throws {
        let server = try await HTTP2Server(
            tls: SecureFixture.server { $0.applicationProtocols = ["h2"] }, Self.echoesPaths)
        let context = try Self.client()
        let first = await self.pool.perform(server.secureRequest(context, target: "/a"))
        let second = await self.pool.perform(server.secureRequest(context, target: "/b"))
        #expect(first.text == "/a" && second.text == "/b" && server.connections == 1)
        #expect(first.head?.version == HTTPVersion(2, 0) && first.framing == .untilClose)
        let metadata = [first, second].compactMap { $0.metrics?.connection }
        #expect(metadata.map(\.networkProtocol) == ["h2", "h2"] && metadata.map(\.isReused) == [false, true])
        #expect(first.metrics?.timings.secureEnd != nil && second.metrics?.timings.secureEnd == nil)
    }

    @Test func serverThatSpeaksHTTP1OnlyIsFoundOutOnItsFirstConnection() async throws {
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        let server = try await RawServer(
            [[.request, .send(ok), .request, .send(ok)]],
            tls: SecureFixture.server { $0.applicationProtocols = ["http/1.1"] })
        let context = try Self.client()
        for _ in 0..<2 { #expect(await self.pool.perform(server.secureRequest(context)).text == "ok") }
        #expect(server.connections == 1)
    }

    @Test func requestsWaitForTheFirstConnectionAndJoinIt() async throws {
        let server = try await HTTP2Server(
            tls: SecureFixture.server { $0.applicationProtocols = ["h2"] }, Self.echoesPaths)
        let context = try Self.client()
        let pool = self.pool
        let texts = await withTaskGroup(of: String.self) { group in
            for number in 0..<20 {
                group.addTask { await pool.perform(server.secureRequest(context, target: "/\(number)")).text }
            }
            return await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(texts == Set((0..<20).map { "/\($0)" }) && server.connections == 1)
    }

    @Test func serverWithoutHTTP2FailsARequestThatAssumesIt() async throws {
        let server = try await RawServer([[.receive("SM\r\n\r\n"), .send("HTTP/1.1 400 Bad Request\r\n\r\n")]])
        var request = server.request()
        request.assumesHTTP2 = true
        guard case .http2(.violation)? = await self.pool.perform(request).failure else { return #expect(Bool(false)) }
    }

    // MARK: Heads

    @Test func requestHeadHasThePseudoHeaderFields() async throws {
        let heads = Mutex<[HTTP2FieldBlock]>([])
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, let block, _) = event else { return }
            heads.withLock { $0.append(block) }
            peer.respond(stream, 204)
        }
        var request = server.request(
            "GET", target: "/x?y",
            [("Connection", "X-Hop, keep-alive"), ("X-Hop", "1"), ("TE", "trailers, gzip"), ("Accept", "*/*")])
        request.priority = 1
        #expect(await self.pool.perform(request).head?.status == 204)
        #expect(
            heads.withLock { $0 } == [
                HTTP2FieldBlock([
                    (":method", "GET"), (":scheme", "http"), (":authority", "127.0.0.1:\(server.port)"),
                    (":path", "/x?y"), ("accept", "*/*"), ("priority", "u=0"),
                ])
            ])
    }

    @Test(arguments: [(1, 0), (0.75, 2), (0.5, 3), (0.25, 5), (0, 7), (-4, 7), (9, 0)] as [(Float, Int)])
    func priorityBecomesAnUrgency(_ priority: Float, _ level: Int) {
        #expect(RequestUrgency(priority: priority).level == level)
    }

    @Test func informationalHeadsAndTrailersAreDelivered() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, _, _) = event else { return }
            for _ in 0..<2 { peer.respond(stream, 103, ends: false) }
            peer.respond(stream, 200, [("a", "1"), ("a", "2")], Array("text".utf8), trailers: [("t", "x")])
        }
        let recorder = await self.pool.perform(server.request())
        #expect(recorder.informational == [103, 103] && recorder.text == "text" && recorder.ends == 1)
        #expect(recorder.head?.fields.values("a") == ["1", "2"] && recorder.trailers == [FieldLine("t", "x")])
    }

    @Test func tooManyInformationalHeadsFailTheExchange() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, _, _) = event else { return }
            for _ in 0..<40 { peer.respond(stream, 103, ends: false) }
        }
        #expect(await self.pool.perform(server.request()).failure == .violation(.tooManyInformationalHeads))
    }

    @Test func headBeyondTheLimitFailsItsExchangeOnly() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, let block, _) = event else { return }
            guard block.first(":path").map({ Array($0) }) == Array("/large".utf8) else { return peer.respond(stream) }
            peer.respond(stream, 200, (0..<20).map { ("field-\($0)", String(repeating: "x", count: 1_000)) })
        }
        var settings = PoolSettings()
        settings.limits.headBytes = 10_000
        let pool = ConnectionPool(settings: settings)
        let large = await pool.perform(server.request(target: "/large"))
        #expect(large.failure == .violation(.head(.tooLong(limit: 10_000))))
        #expect(await pool.perform(server.request()).head?.status == 200)
        #expect(server.connections == 1)
    }

    /// libnghttp2 sends 64 KiB by default, and takes no more than that in one value.
    @Test func largeRequestHeadIsSentOnce() async throws {
        let sizes = Mutex<[Int]>([])
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, let block, _) = event else { return }
            sizes.withLock { $0.append(block.bytes.count) }
            peer.respond(stream)
        }
        let cookie = String(repeating: "c", count: 50_000)
        let request = server.request(target: "/" + String(repeating: "u", count: 60_000), [("Cookie", cookie)])
        #expect(await self.pool.perform(request).head?.status == 200)
        #expect(sizes.withLock { $0 }.first.map { $0 > 110_000 } == true && server.connections == 1)
    }

    @Test func requestHeadBeyondTheLimitIsTheCallersFault() async throws {
        let server = try await HTTP2Server(Self.echoesPaths)
        let cookies = (0..<6).map { ("Cookie", String(repeating: "\($0)", count: 50_000)) }
        #expect(await self.pool.perform(server.request("POST", cookies)).failure == .request(.headTooLarge))
        #expect(await self.pool.perform(server.request(target: "/next")).text == "/next")
        #expect(server.connections == 1)
    }

    // MARK: Bodies

    @Test func bodiesFlowBothWays() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .inputEnded(let stream) = event else { return }
            peer.respond(stream, 200, [], peer.bodies[stream] ?? [])
        }
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        var request = server.request("POST")
        request.body = .bytes(body)
        let recorder = await self.pool.perform(request)
        #expect(recorder.content == body && recorder.sent == body.count)
        #expect(recorder.metrics?.requestBodyBytes == 3_000_000 && recorder.metrics?.responseBodyBytes == 3_000_000)
    }

    @Test func unpulledStreamDoesNotStopOthers() async throws {
        let body = [UInt8](repeating: 7, count: 2_000_000)
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, _, _) = event else { return }
            peer.respond(stream, 200, [], body)
        }
        let slow = ExchangeRecorder()
        let exchange = self.pool.exchange(server.request(), consumer: slow)
        exchange.start()
        await slow.headCame.pass()
        for _ in 0..<3 { #expect(await self.pool.perform(server.request()).content.count == body.count) }
        #expect(slow.now.content.isEmpty && slow.now.ends == 0 && server.connections == 1)
        slow.pull(.max, exchange)
        #expect(await slow.whole().content == body)
    }

    @Test func bodyWaitsForContinue() async throws {
        let asked = Mutex(0)
        let server = try await HTTP2Server { peer, event in
            switch event {
            case .head(let stream, let block, _):
                asked.withLock { $0 += block.first("expect") == nil ? 0 : 1 }
                peer.respond(stream, 100, ends: false)
            case .inputEnded(let stream): peer.respond(stream, 200, [], peer.bodies[stream] ?? [])
            default: break
            }
        }
        var request = server.request("POST")
        request.body = .bytes(Array("body".utf8))
        request.continueTimeout = .seconds(200)
        let recorder = await self.pool.perform(request)
        #expect(recorder.text == "body" && recorder.informational == [100] && asked.withLock { $0 } == 1)
    }

    @Test func responseBeforeTheEndOfTheBodyResetsTheStreamOnly() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, let block, _) = event else { return }
            peer.consumes = false
            peer.respond(stream, block.first(":method")?.count == 4 ? 413 : 200)
        }
        var request = server.request("POST")
        request.body = .bytes([UInt8](repeating: 1, count: 4_000_000))
        #expect(await self.pool.perform(request).head?.status == 413)
        #expect(await self.pool.perform(server.request()).head?.status == 200)
        #expect(server.connections == 1)
    }

    // MARK: Ends

    @Test func cancellingResetsTheStreamOnly() async throws {
        let reset = Gate()
        let server = try await HTTP2Server { peer, event in
            switch event {
            case .head(let stream, let block, _):
                let isSlow = block.first(":path").map { Array($0) } == Array("/slow".utf8)
                peer.respond(stream, 200, [], isSlow ? Array("part".utf8) : [], ends: !isSlow)
            case .closed(_, .cancel): reset.open()
            default: break
            }
        }
        let recorder = ExchangeRecorder()
        let exchange = self.pool.exchange(server.request(target: "/slow"), consumer: recorder)
        recorder.pull(.max, exchange)
        exchange.start()
        await recorder.contentCame.pass()
        exchange.cancel()
        #expect(await recorder.whole().failure == .cancelled)
        await reset.pass()
        #expect(await self.pool.perform(server.request()).head?.status == 200)
        #expect(server.connections == 1)
    }

    @Test func silentStreamTimesOut() async throws {
        let server = try await HTTP2Server { _, _ in }
        var request = server.request()
        request.idleTimeout = .milliseconds(50)
        #expect(await self.pool.perform(request).failure == .idle)
    }

    @Test(arguments: [
        (HTTP2ErrorCode.internalError, HTTP2Error.reset(code: "INTERNAL_ERROR")), (.enhanceYourCalm, .overload),
    ])
    func resetStreamFailsWithItsCode(_ code: HTTP2ErrorCode, _ error: HTTP2Error) async throws {
        let server = try await HTTP2Server { peer, event in
            if case .head(let stream, _, _) = event { peer.engine.reset(stream, code) }
        }
        #expect(await self.pool.perform(server.request()).failure == .http2(error))
    }

    @Test func refusedStreamIsRepeated() async throws {
        let count = Mutex(0)
        let server = try await HTTP2Server { peer, event in
            guard case .inputEnded(let stream) = event else { return }
            let turn = count.withLock { count in
                count += 1
                return count
            }
            if turn < 3 { peer.engine.reset(stream, .refusedStream) } else { peer.respond(stream) }
        }
        // Not idempotent, but safe to repeat: the server did not process it.
        var request = server.request("POST")
        request.body = .bytes([1, 2, 3])
        #expect(await self.pool.perform(request).head?.status == 200)
        #expect(count.withLock { $0 } == 3)
    }

    /// A request with a response was processed (RFC 9113 §8.7).
    @Test func streamThatIsRefusedAfterItsResponseBeganFails() async throws {
        let heads = Mutex(0)
        let server = try await HTTP2Server { peer, event in
            guard case .head = event else { return }
            heads.withLock { $0 += 1 }
            // A head with status 200, one byte of content, and RST_STREAM, all of stream 1.
            peer.sendRaw([0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88])
            peer.sendRaw([0, 0, 1, 0, 0, 0, 0, 0, 1, 0x61])
            peer.sendRaw([0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7])
        }
        #expect(await self.pool.perform(server.request()).failure == .http2(.refused))
        #expect(heads.withLock { $0 } == 1)
    }

    @Test func streamThatIsAlwaysRefusedFails() async throws {
        let server = try await HTTP2Server { peer, event in
            if case .head(let stream, _, _) = event { peer.engine.reset(stream, .refusedStream) }
        }
        #expect(await self.pool.perform(server.request()).failure == .http2(.refused))
    }

    /// The caller may repeat the request with another body.
    @Test(arguments: [true, false])
    func refusedRequestWhoseBodyCannotBeReadAgainFails(_ byReset: Bool) async throws {
        let bodies = Mutex(0)
        let server = try await HTTP2Server { peer, event in
            guard case .inputEnded(let stream) = event else { return }
            bodies.withLock { $0 += 1 }
            guard !byReset else { return peer.engine.reset(stream, .refusedStream) }
            peer.sendRaw([0, 0, 8, 7, 0, 0, 0, 0, 0] + [0, 0, 0, 0] + [0, 0, 0, 2])
        }
        var request = server.request("POST")
        request.body = .source(FixedBody([1, 2, 3], canRewind: false), length: nil)
        #expect(await self.pool.perform(request).failure == .http2(.refused))
        #expect(bodies.withLock { $0 } == 1 && server.connections == 1)
    }

    enum BodyKind: CaseIterable {
        case none, bytes, source

        var body: RequestBody {
            switch self {
            case .none: .none
            case .bytes: .bytes(Array("body".utf8))
            case .source: .source(FixedBody(Array("body".utf8)), length: nil)
            }
        }
    }

    private static let codesOfGOAWAY: [HTTP2ErrorCode] = [
        .noError, .protocolError, .internalError, .flowControlError, .settingsTimeout, .streamClosed, .frameSizeError,
        .refusedStream, .cancel, .compressionError, .connectError, .inadequateSecurity, HTTP2ErrorCode(rawValue: 0xFF),
    ]

    /// The first connection answers each request by a GOAWAY that names no stream as processed (RFC 9113 §6.8).
    private static func goAwayServer(_ code: HTTP2ErrorCode) async throws -> HTTP2Server {
        try await HTTP2Server { peer, event in
            switch event {
            case .head where peer.number == 0:
                let number = UInt8(truncatingIfNeeded: code.rawValue)
                peer.sendRaw([0, 0, 8, 7, 0, 0, 0, 0, 0] + [0, 0, 0, 0] + [0, 0, 0, number])
            case .inputEnded(let stream) where peer.number > 0: peer.respond(stream, 200, [], peer.bodies[stream] ?? [])
            case .head(let stream, _, isLast: true): peer.respond(stream)
            default: break
            }
        }
    }

    @Test(arguments: Self.codesOfGOAWAY, BodyKind.allCases)
    func goAwayMovesRequestsToAnotherConnection(_ code: HTTP2ErrorCode, _ kind: BodyKind) async throws {
        let server = try await Self.goAwayServer(code)
        var request = server.request("POST")
        request.body = kind.body
        let recorder = await self.pool.perform(request)
        #expect(recorder.head?.status == 200 && recorder.text == (kind == .none ? "" : "body"), "\(recorder)")
        #expect(server.connections == 2)
    }

    /// These codes say how the request is to be sent, or that it is not to be sent now.
    @Test(
        arguments: [(HTTP2ErrorCode.enhanceYourCalm, HTTP2Error.overload), (.http11Required, .http11Required)],
        BodyKind.allCases)
    func goAwayThatForbidsRetriesIsNotRetried(
        _ answer: (code: HTTP2ErrorCode, failure: HTTP2Error), _ kind: BodyKind
    ) async throws {
        let server = try await Self.goAwayServer(answer.code)
        var request = server.request("POST")
        request.body = kind.body
        #expect(await self.pool.perform(request).failure == .http2(answer.failure))
        #expect(server.connections == 1)
    }

    /// Each connection processes its first request, and ends when it has seen another.
    @Test func requestsAreMovedUntilTheServerHasProcessedAll() async throws {
        let count = 300
        let answered = Mutex(0)
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, _, _) = event else { return }
            let isLast = answered.withLock { $0 == count - 1 }
            guard stream == 3 || isLast else { return }
            answered.withLock { $0 += 1 }
            peer.sendRaw([0, 0, 8, 7, 0, 0, 0, 0, 0] + [0, 0, 0, 1] + [0, 0, 0, 0])
            peer.respond(1)
        }
        let recorders = await self.perform(count, server.request("POST"))
        #expect(recorders.allSatisfy { $0.head?.status == 200 }, "\(recorders.compactMap(\.failure))")
        #expect(server.connections == count)
    }

    /// The second connection ends before the answer.
    @Test func movedRequestIsRepeatedAfterALoss() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, _, _) = event else { return }
            switch (peer.number, stream) {
            case (0, 3):
                peer.sendRaw([0, 0, 8, 7, 0, 0, 0, 0, 0] + [0, 0, 0, 1] + [0, 0, 0, 0])
                peer.respond(1)
            case (0, _), (1, 1): break
            case (1, 3):
                peer.respond(1)
                peer.close()
            default: peer.respond(stream)
            }
        }
        let recorders = await self.perform(3, server.request())
        #expect(recorders.allSatisfy { $0.head?.status == 200 }, "\(recorders.compactMap(\.failure))")
        #expect(server.connections == 3)
    }

    private func perform(_ count: Int, _ request: ExchangeRequest) async -> [ExchangeRecorder.Entry] {
        let pool = self.pool
        return await withTaskGroup(of: ExchangeRecorder.Entry.self) { group in
            for _ in 0..<count { group.addTask { await pool.perform(request) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test func lostConnectionFailsItsExchanges() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, let block, _) = event else { return }
            if block.first(":path").map({ Array($0) }) == Array("/part".utf8) {
                peer.respond(stream, 200, [("content-length", "9")], Array("part".utf8), ends: false)
            }
            peer.close()
        }
        let head = await self.pool.perform(server.request())
        guard case .connectionLost(let loss)? = head.failure else { return #expect(Bool(false), "\(head)") }
        #expect(!loss.wasReused && !loss.responseBegan)
        let part = await self.pool.perform(server.request(target: "/part"))
        #expect(part.failure == .truncated(received: 4, expected: 9, cause: nil))
    }

    // MARK: Connections

    /// The server answers once all of its streams that the session may use are open.
    @Test(arguments: 1...3)
    func limitOfStreamsOpensAnotherConnectionIfTheSessionAllowsIt(_ limit: Int) async throws {
        let gate = Gate()
        let arrived = Mutex(0)
        var settings = HTTP2Settings()
        settings.maximumConcurrentStreams = 2
        let server = try await HTTP2Server(settings: settings) { peer, event in
            guard case .head(let stream, let block, _) = event else { return }
            guard block.first(":path").map({ Array($0) }) != Array("/first".utf8) else { return peer.respond(stream) }
            let count = arrived.withLock { count in
                count += 1
                return count
            }
            if count == 2 * limit { gate.open() }
            gate.whenOpen { TestLoops.servers.execute { peer.respond(stream) } }
        }
        let pool = Self.pool(limit: limit)
        // The server's settings are known when its first response has come.
        #expect(await pool.perform(server.request(target: "/first")).head?.status == 200)
        let statuses = await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<8 { group.addTask { await pool.perform(server.request()).head?.status } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == Array(repeating: 200, count: 8))
        #expect(server.connections == limit)
    }

    @Test func freshConnectionIsOpenedOnDemand() async throws {
        let server = try await HTTP2Server(Self.echoesPaths)
        let pool = Self.pool(limit: 1)
        for _ in 0..<2 {
            var request = server.request(target: "/f")
            request.needsFreshConnection = true
            #expect(await pool.perform(request).text == "/f")
        }
        #expect(server.connections == 2)
    }

    @Test func retiredConnectionIsNotUsedAgain() async throws {
        let server = try await HTTP2Server(Self.echoesPaths)
        #expect(await self.pool.perform(server.request()).text == "/")
        self.pool.retireConnections()
        #expect(await self.pool.perform(server.request()).text == "/")
        #expect(server.connections == 2)
    }

    // MARK: Hostile servers

    /// Frames that break a rule: each ends the connection, and the next request uses a new one.
    @Test(arguments: [
        // DATA on stream 0; PUSH_PROMISE although it is off; HEADERS on an even stream; a window beyond 2^31 - 1.
        [0, 0, 1, 0, 0, 0, 0, 0, 0, 1], [0, 0, 5, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0x88],
        [0, 0, 1, 1, 5, 0, 0, 0, 2, 0x88],
        [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7F, 0xFF, 0xFF, 0xFF],
        // A frame larger than the limit; a block that refers to an entry that is not there.
        [0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 4, 0, 0, 0, 1, 0xFE],
    ])
    func brokenRuleEndsTheConnection(_ bytes: [UInt8]) async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, _, _) = event else { return }
            if peer.number == 0 { peer.sendRaw(bytes) } else { peer.respond(stream) }
        }
        let recorder = await self.pool.perform(server.request())
        guard case .http2(.violation)? = recorder.failure else { return #expect(Bool(false), "\(recorder)") }
        #expect(await self.pool.perform(server.request()).head?.status == 200)
        #expect(server.connections == 2)
    }

    /// Another request of the connection goes on.
    @Test(
        arguments: [
            // No status; a field of connections; content that is longer than announced.
            [0, 0, 5, 1, 5, 0, 0, 0, 1, 0, 1, 0x78, 1, 0x31],
            [0, 0, 15, 1, 5, 0, 0, 0, 1, 0x88, 0, 10] + Array("connection".utf8) + [1, 0x61],
            [0, 0, 5, 1, 4, 0, 0, 0, 1, 0x88, 0x0F, 13, 1, 0x31, 0, 0, 2, 0, 1, 0, 0, 0, 1, 0, 0],
        ] as [[UInt8]])
    func malformedResponseEndsItsRequestAlone(_ bytes: [UInt8]) async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head(let stream, _, _) = event else { return }
            if stream == 1 { peer.sendRaw(bytes) } else { peer.respond(stream) }
        }
        let recorder = await self.pool.perform(server.request())
        #expect(recorder.failure == .violation(.message))
        #expect(await self.pool.perform(server.request()).head?.status == 200)
        #expect(server.connections == 1)
    }

    @Test func floodOfSettingsEndsTheConnection() async throws {
        let server = try await HTTP2Server { peer, event in
            guard case .head = event else { return }
            for _ in 0..<20 {
                peer.sendRaw((0..<1_000).flatMap { _ in [0, 0, 0, 4, 0, 0, 0, 0, 0] as [UInt8] })
            }
        }
        let recorder = await self.pool.perform(server.request())
        guard case .http2? = recorder.failure else { return #expect(Bool(false), "\(recorder)") }
    }
}
