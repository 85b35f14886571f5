import HTTPTransport
import StreamTransport
import Testing
import WireText

@Suite("Connections that serve again, RFC 9112 §9", .timeLimit(.minutes(20)))
struct ReuseTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private let pool = ConnectionPool()

    @Test func connectionServesConsecutiveRequests() async throws {
        let server = try await RawServer([[.request, .send(Self.ok), .request, .send(Self.ok)]])
        let first = await self.pool.perform(server.request())
        let second = await self.pool.perform(server.request())
        #expect(first.text == "ok")
        #expect(second.text == "ok")
        #expect(server.connections == 1)
        #expect(first.connections.map(\.isReused) == [false])
        #expect(second.connections.map(\.isReused) == [true])
        #expect(second.metrics?.timings == ConnectTimings())
        #expect(second.metrics?.responseHeadBytes == Int64(Self.ok.utf8.count - 2))
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        // Bytes after the announced length are no response to the next request.
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX: ",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\nX: ",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nH",
    ])
    func connectionWithFurtherBytesIsNotReused(_ answer: String) async throws {
        let server = try await RawServer([
            [.request, .send(answer), .request, .send("poison")], [.request, .send(Self.ok)],
        ])
        let first = await self.pool.perform(server.request())
        #expect(first.text == "ok")
        #expect(first.trailers == [])
        let second = await self.pool.perform(server.request())
        #expect(second.text == "ok")
        #expect(server.connections == 2)
    }

    /// Some servers end the content with a line break that its length does not count.
    @Test func lineBreakBeforeTheNextResponseIsSkipped() async throws {
        let server = try await RawServer([[.request, .send(Self.ok), .request, .send("\r\n" + Self.ok)]])
        for _ in 0..<2 { #expect(await self.pool.perform(server.request()).text == "ok") }
        #expect(server.connections == 1)
    }

    @Test func connectionWithContentAfterAHeadResponseIsNotReused() async throws {
        let server = try await RawServer([
            [.request, .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno"), .request], [.request, .send(Self.ok)],
        ])
        #expect(await self.pool.perform(server.request("HEAD")).trailers == [])
        #expect(await self.pool.perform(server.request()).text == "ok")
        #expect(server.connections == 2)
    }

    /// The server closes an idle connection while the client writes a request.
    @Test(arguments: [RawServer.Step.close, .finish])
    func requestOnAClosedConnectionIsRepeated(_ ending: RawServer.Step) async throws {
        let server = try await RawServer([[.request, .send(Self.ok), .request, ending], [.request, .send(Self.ok)]])
        _ = await self.pool.perform(server.request())
        let second = await self.pool.perform(server.request())
        #expect(second.text == "ok")
        #expect(second.connections.map(\.isReused) == [true, false])
        #expect(second.ends == 1)
        #expect(server.connections == 2)
    }

    @Test func rewindableBodyIsRepeated() async throws {
        let server = try await RawServer([
            [.request, .send(Self.ok), .receive("\r\n\r\nbody"), .close], [.receive("\r\n\r\nbody"), .send(Self.ok)],
        ])
        _ = await self.pool.perform(server.request())
        var request = server.request("PUT")
        request.body = .bytes(Array("body".utf8))
        let second = await self.pool.perform(request)
        #expect(second.text == "ok")
        #expect(second.metrics?.requestContentBytes == 4)
    }

    @Test func unrepeatedRequestFailsWithItsReason() async throws {
        let server = try await RawServer([[.request, .send(Self.ok), .request, .send(Self.ok), .request, .close]])
        _ = await self.pool.perform(server.request())
        _ = await self.pool.perform(server.request())
        let post = await self.pool.perform(server.request("POST"))
        let loss = ConnectionLoss(cause: nil, wasReused: true, responseBegan: false, wasRepeated: false)
        #expect(post.failure == .connectionLost(loss))
        #expect(server.connections == 1)
    }

    @Test func requestIsRepeatedOnce() async throws {
        let server = try await RawServer([[.request, .send(Self.ok), .request, .close], [.request, .close]])
        _ = await self.pool.perform(server.request())
        let second = await self.pool.perform(server.request())
        let loss = ConnectionLoss(cause: nil, wasReused: false, responseBegan: false, wasRepeated: true)
        #expect(second.failure == .connectionLost(loss))
        #expect(server.connections == 2)
    }

    @Test func lossOnAFreshConnectionIsNotRepeated() async throws {
        let server = try await RawServer([[.request, .close], [.request, .send(Self.ok)]])
        let recorder = await self.pool.perform(server.request())
        guard case .connectionLost? = recorder.failure else { return #expect(Bool(false)) }
        #expect(server.connections == 1)
    }

    @Test func requestsWaitForAFreeConnection() async throws {
        var settings = PoolSettings()
        settings.connectionsPerHost = 2
        let pool = ConnectionPool(settings: settings)
        let many = Array(repeating: [RawServer.Step.request, .send(Self.ok)], count: 40).flatMap { $0 }
        let server = try await RawServer([many, many])
        let request = server.request()
        await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<40 { group.addTask { await pool.perform(request).text == "ok" } }
            for await good in group { #expect(good) }
        }
        #expect(server.connections <= 2)
    }

    @Test func waitingRequestsAreServedByPriority() async throws {
        var settings = PoolSettings()
        settings.connectionsPerHost = 1
        let pool = ConnectionPool(settings: settings)
        let gate = Gate()
        let server = try await RawServer([
            [.request, .wait(gate)] + Array(repeating: [.send(Self.ok), .request], count: 4).flatMap { $0 }
        ])
        var recorders: [ExchangeRecorder] = []
        for (path, priority) in [("/first", 0.5), ("/low", 0.25), ("/high", 0.75), ("/raised", 0.1)]
            as [(String, Float)]
        {
            var request = server.request()
            request.head.target = path
            request.priority = priority
            let recorder = ExchangeRecorder()
            let exchange = pool.exchange(request, consumer: recorder)
            recorder.pull(.max, exchange)
            exchange.start()
            if recorders.isEmpty { await recorder.connected.pass() }
            if path == "/raised" { exchange.setPriority(1) }
            recorders.append(recorder)
        }
        await pool.settle()
        gate.open()
        for recorder in recorders { _ = await recorder.whole() }
        let lines = server.received[0].split(separator: "\r\n").filter { $0.hasPrefix("GET") }.map {
            $0.split(separator: " ")[1]
        }
        #expect(lines == ["/first", "/raised", "/high", "/low"])
    }

    @Test func existingConnectionsAreRetired() async throws {
        let server = try await RawServer([[.request, .send(Self.ok)], [.request, .send(Self.ok)]])
        _ = await self.pool.perform(server.request())
        self.pool.retireConnections()
        #expect(await self.pool.perform(server.request()).connections.map(\.isReused) == [false])
        var request = server.request()
        request.needsFreshConnection = true
        #expect(server.connections == 2)
    }

    @Test func closingThePoolFailsWaitingRequests() async throws {
        var settings = PoolSettings()
        settings.connectionsPerHost = 1
        let pool = ConnectionPool(settings: settings)
        let gate = Gate()
        let server = try await RawServer([[.request, .wait(gate), .send(Self.ok)]])
        let running = ExchangeRecorder()
        let waiting = ExchangeRecorder()
        for recorder in [running, waiting] {
            let exchange = pool.exchange(server.request(), consumer: recorder)
            recorder.pull(.max, exchange)
            exchange.start()
        }
        await running.connected.pass()
        pool.close()
        #expect(await waiting.whole().failure == .poolClosed)
        gate.open()
        #expect(await running.whole().text == "ok")
        #expect(await pool.perform(server.request()).failure == .poolClosed)
    }
}
