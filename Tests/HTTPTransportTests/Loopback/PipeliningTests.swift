import HTTPTransport
import Testing
import WireText

/// RFC 9112 §9.3.2. The first request of each test shows that the server keeps its connections.
@Suite("Pipelined requests", .timeLimit(.minutes(20)))
struct PipeliningTests {
    private static func ok(_ text: String, _ fields: String = "") -> String {
        "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\(fields)\r\n\(text)"
    }

    private static func requests(_ count: Int) -> [RawServer.Step] { Array(repeating: .request, count: count) }

    /// A server whose first connection answers one request and then follows `script`.
    private func server(_ script: [RawServer.Step], then others: [[RawServer.Step]] = []) async throws -> RawServer {
        try await RawServer([[.request, .send(Self.ok("zero"))] + script] + others)
    }

    private func pool(connections: Int = 1) -> ConnectionPool {
        var settings = PoolSettings()
        settings.connectionsPerHost = connections
        return ConnectionPool(settings: settings)
    }

    private struct Started {
        let recorder: ExchangeRecorder
        let exchange: Exchange
    }

    /// Performs a request, and starts `methods.count` more: all but the first of them find the connection busy.
    private func start(_ methods: [String], at server: RawServer, in pool: ConnectionPool) async -> [Started] {
        var request = server.request()
        request.usesPipelining = true
        _ = await pool.perform(request)
        var started: [Started] = []
        for (index, method) in methods.enumerated() {
            request.head.method = method
            request.head.target = "/\(index)"
            let recorder = ExchangeRecorder()
            let exchange = pool.exchange(request, consumer: recorder)
            recorder.pull(.max, exchange)
            exchange.start()
            if index == 0 { await recorder.connected.pass() }
            started.append(Started(recorder: recorder, exchange: exchange))
        }
        return started
    }

    private func texts(_ started: [Started]) async -> [String] {
        var texts: [String] = []
        for one in started { texts.append(await one.recorder.whole().text) }
        return texts
    }

    @Test func responsesComeInTheOrderOfTheRequests() async throws {
        let answers = Self.ok("a") + Self.ok("bb") + Self.ok("ccc")
        let server = try await self.server(Self.requests(3) + [.send(answers)])
        let started = await self.start(["GET", "GET", "GET"], at: server, in: self.pool())
        #expect(await self.texts(started) == ["a", "bb", "ccc"])
        #expect(server.connections == 1)
        for one in started {
            let entry = await one.recorder.whole()
            #expect(entry.connections.map(\.isReused) == [true] && entry.ends == 1)
            #expect(
                entry.metrics?.responseHeadBytes == Int64("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n".utf8.count))
        }
    }

    @Test func requestsWithoutPermissionWait() async throws {
        let server = try await self.server([.request, .send(Self.ok("a")), .request, .send(Self.ok("b"))])
        let pool = self.pool()
        let recorders = [await pool.perform(server.request()), await pool.perform(server.request())]
        #expect(recorders.map(\.text) == ["zero", "a"] && server.received[0].components("GET ") == 2)
    }

    @Test func requestsWithAnEffectAreNotPipelined() async throws {
        let server = try await self.server(
            [.request, .send(Self.ok("a")), .request, .send(Self.ok("b")), .request, .send(Self.ok("c"))])
        let started = await self.start(["GET", "POST", "PUT"], at: server, in: self.pool())
        #expect(await self.texts(started) == ["a", "b", "c"])
    }

    @Test func depthIsLimited() async throws {
        let (six, go) = (Gate(), Gate())
        let count = 9
        let late = Array(repeating: [RawServer.Step.request, .send(Self.ok("y"))], count: count - 6).flatMap { $0 }
        let server = try await self.server(
            Self.requests(6) + [.open(six), .wait(go), .send(String(repeating: Self.ok("x"), count: 6))] + late)
        let started = await self.start(Array(repeating: "GET", count: count), at: server, in: self.pool())
        await six.pass()
        #expect(server.received[0].components("GET ") == 1 + 6)
        go.open()
        #expect(await self.texts(started) == Array(repeating: "x", count: 6) + Array(repeating: "y", count: 3))
        #expect(server.connections == 1)
    }

    @Test func responsesWithoutContentAreDelivered() async throws {
        let answers =
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + "HTTP/1.1 204 No Content\r\n\r\n"
            + "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 304 Not Modified\r\n\r\n"
            + "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n" + Self.ok("last")
        let server = try await self.server(Self.requests(5) + [.send(answers)])
        let started = await self.start(["HEAD", "GET", "GET", "GET", "OPTIONS"], at: server, in: self.pool())
        #expect(await self.texts(started) == ["", "", "", "ok", "last"])
        let informational = await started[2].recorder.whole().informational
        #expect(informational == [103] && server.connections == 1)
    }

    /// The server ends the connection after each possible number of bytes.
    @Test func connectionMayEndAnywhere() async throws {
        let answers = Array((Self.ok("one") + Self.ok("two") + Self.ok("three")).utf8)
        let lengths = [Self.ok("one").utf8.count, Self.ok("two").utf8.count, Self.ok("three").utf8.count]
        let rest = Array(repeating: [RawServer.Step.request, .send(Self.ok("again"))], count: 3).flatMap { $0 }
        for count in 0...answers.count {
            let server = try await self.server(
                Self.requests(3) + [.sendBytes(Array(answers.prefix(count))), .close], then: [rest, rest, rest])
            let started = await self.start(["GET", "GET", "GET"], at: server, in: self.pool())
            var (before, texts) = (0, [String]())
            for (one, length) in zip(started, lengths) {
                let entry = await one.recorder.whole()
                #expect(entry.ends == 1)
                let isWhole = before + length <= count
                let isBegun = before < count && !isWhole
                // A request whose response head has arrived is not repeated.
                if isWhole { #expect(["one", "two", "three"].contains(entry.text), "\(count)") }
                if !isWhole && !isBegun { #expect(entry.text == "again", "\(count): \(String(describing: entry.end))") }
                if isBegun { #expect(entry.text == "again" || entry.failure != nil, "\(count)") }
                texts.append(entry.text)
                before += length
            }
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na",
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
        "HTTP/1.1 200 OK\r\n\r\na",
    ])
    func announcedEndLeavesTheOthersToAnotherConnection(_ answer: String) async throws {
        let server = try await self.server(
            Self.requests(3) + [.send(answer), .close],
            then: [[.request, .send(Self.ok("b")), .request, .send(Self.ok("c"))]])
        let started = await self.start(["GET", "GET", "GET"], at: server, in: self.pool())
        #expect(await self.texts(started) == ["a", "b", "c"] && server.connections == 2)
    }

    @Test func requestsAfterAnInvalidResponseAreRepeated() async throws {
        let server = try await self.server(
            Self.requests(2) + [.send(Self.ok("a") + "garbage\r\n\r\n")], then: [[.request, .send(Self.ok("b"))]])
        let started = await self.start(["GET", "GET"], at: server, in: self.pool())
        #expect(await self.texts(started) == ["a", "b"] && server.connections == 2)
    }

    @Test func serverThatClosesIsNotPipelinedAgain() async throws {
        let (asked, go) = (Gate(), Gate())
        let server = try await self.server(
            Self.requests(3) + [.send(Self.ok("a")), .close],
            then: [
                [.request, .send(Self.ok("b")), .request, .send(Self.ok("c")), .request, .open(asked), .wait(go)]
                    + [.send(Self.ok("d")), .request, .send(Self.ok("e"))]
            ])
        let pool = self.pool()
        let started = await self.start(["GET", "GET", "GET"], at: server, in: pool)
        #expect(await self.texts(started) == ["a", "b", "c"])
        var request = server.request()
        request.usesPipelining = true
        async let first = pool.perform(request)
        await asked.pass()
        async let second = pool.perform(request)
        #expect(server.received[1].components("GET ") == 3)
        go.open()
        #expect(await first.text == "d")
        #expect(await second.text == "e")
    }

    @Test(arguments: 0..<3)
    func cancelledRequestDoesNotAffectOthers(_ index: Int) async throws {
        let (asked, go) = (Gate(), Gate())
        let rest = Array(repeating: [RawServer.Step.request, .send(Self.ok("again"))], count: 3).flatMap { $0 }
        let server = try await self.server(
            Self.requests(3) + [.open(asked), .wait(go), .send(Self.ok("a") + Self.ok("b") + Self.ok("c"))],
            then: [rest, rest])
        let started = await self.start(["GET", "GET", "GET"], at: server, in: self.pool())
        await asked.pass()
        started[index].exchange.cancel()
        let cancelled = await started[index].recorder.whole()
        #expect(cancelled.failure == .cancelled)
        go.open()
        for (other, one) in started.enumerated() where other != index {
            let text = await one.recorder.whole().text
            #expect(text == (other == 0 ? "a" : "again"), "\(other)")
        }
    }

    @Test func consumerThatTakesNothingDoesNotKeepOthersWaiting() async throws {
        let (asked, free) = (Gate(), Gate())
        // More than the client reads ahead.
        let slow = String(repeating: "slow", count: 1 << 20)
        let server = try await self.server(
            Self.requests(2) + [.open(asked), .send(Self.ok(slow) + Self.ok("unread"))],
            then: [[.request, .wait(free), .send(Self.ok("b")), .request, .send(Self.ok("c"))]])
        let pool = self.pool(connections: 2)
        var request = server.request()
        request.usesPipelining = true
        _ = await pool.perform(request)
        let lazy = ExchangeRecorder()
        let exchange = pool.exchange(request, consumer: lazy)
        exchange.start()
        await lazy.connected.pass()
        async let second = pool.perform(request)
        async let third = pool.perform(request)
        await asked.pass()
        free.open()
        #expect(Set([await second.text, await third.text]) == ["b", "c"])
        lazy.pull(.max, exchange)
        #expect(await lazy.whole().text == slow)
    }
}

extension String {
    /// The number of occurrences of `part`.
    fileprivate func components(_ part: String) -> Int { self.ranges(of: part).count }
}
