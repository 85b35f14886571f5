import HTTPTransport
import StreamTransport
import Synchronization
import Testing
import WireText

@Suite("Backpressure, cancelling and deadlines of exchanges", .timeLimit(.minutes(20)))
struct FlowTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private let pool = ConnectionPool()

    @Test func contentIsDeliveredOnlyWhenPulled() async throws {
        let sent = Gate()
        let server = try await RawServer([
            [
                .request, .send("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n" + String(repeating: "x", count: 30)),
                .open(sent),
            ]
        ])
        let recorder = ExchangeRecorder()
        let exchange = self.pool.exchange(server.request(), consumer: recorder)
        exchange.start()
        await recorder.headCame.pass()
        await sent.pass()
        #expect(recorder.now.content.isEmpty)
        recorder.pull(1, exchange)
        // Pieces are not cut.
        #expect(await recorder.whole().content.count == 30)
    }

    /// A server with more bytes than all buffers hold cannot finish before the client reads.
    @Test func serverIsHeldBackByASlowReader() async throws {
        let size = 64 << 20
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n"
        let piece = [UInt8](repeating: 1, count: 1 << 20)
        let server = try await RawServer([[.request, .send(answer)] + Array(repeating: .sendBytes(piece), count: 64)])
        let largest = Mutex(0)
        let counted = Mutex(0)
        let handle = Mutex<(Counter, Exchange)?>(nil)
        let consumer = Counter { count in
            largest.withLock { $0 = max($0, count) }
            counted.withLock { $0 += count }
            if let (counter, exchange) = handle.withLock({ $0 }) { counter.pull(count, exchange) }
        }
        let exchange = self.pool.exchange(server.request(), consumer: consumer)
        handle.withLock { $0 = (consumer, exchange) }
        exchange.start()
        await consumer.headCame.pass()
        #expect(counted.withLock { $0 } == 0)
        consumer.pull(100_000, exchange)
        await consumer.ended.pass()
        #expect(counted.withLock { $0 } == size)
        #expect(largest.withLock { $0 } <= 256 << 10)
        handle.withLock { $0 = nil }
    }

    @Test func exchangeIsCancelledInEveryPhase() async throws {
        let gate = Gate()
        let heard = Gate()
        let server = try await RawServer([
            [.request, .open(heard), .wait(gate)],
            [.request, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), .wait(gate)],
        ])
        // Before it starts.
        let before = ExchangeRecorder()
        let early = self.pool.exchange(server.request(), consumer: before)
        early.cancel()
        early.start()
        #expect(await before.whole().failure == .cancelled)
        // While the exchange waits for the head.
        let waiting = ExchangeRecorder()
        let first = self.pool.exchange(server.request(), consumer: waiting)
        first.start()
        await heard.pass()
        first.cancel()
        first.cancel()
        #expect(await waiting.whole().failure == .cancelled)
        // In the middle of the content.
        let reading = ExchangeRecorder()
        let second = self.pool.exchange(server.request(), consumer: reading)
        reading.pull(.max, second)
        second.start()
        await reading.contentCame.pass()
        second.cancel()
        #expect(await reading.whole().failure == .cancelled)
        #expect(reading.now.ends == 1)
        #expect(server.connections == 2)
    }

    @Test func exchangeIsCancelledFromACallback() async throws {
        let server = try await RawServer([
            [.request, .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab"), .send("cd")]
        ])
        let handle = Mutex<Exchange?>(nil)
        let recorder = ExchangeRecorder(onContent: { _ in handle.withLock { $0 }?.cancel() })
        let exchange = self.pool.exchange(server.request(), consumer: recorder)
        handle.withLock { $0 = exchange }
        recorder.pull(.max, exchange)
        exchange.start()
        #expect(await recorder.whole().failure == .cancelled)
        #expect(recorder.now.ends == 1)
        handle.withLock { $0 = nil }
    }

    @Test func thousandsOfExchangesAreCancelledFromManyThreads() async throws {
        let server = try await RawServer([])
        var settings = PoolSettings()
        settings.connectionsPerHost = 4
        let pool = ConnectionPool(settings: settings)
        let request = server.request()
        let ends = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<2000 {
                group.addTask {
                    let recorder = ExchangeRecorder()
                    let exchange = pool.exchange(request, consumer: recorder)
                    exchange.start()
                    exchange.cancel()
                    return await recorder.whole().ends
                }
            }
            return await group.reduce(0, +)
        }
        #expect(ends == 2000)
    }

    @Test func idleConnectionTimesOut() async throws {
        let server = try await RawServer([
            [.request], [.request, .send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")],
        ])
        for _ in 0..<2 {
            var request = server.request()
            request.idleTimeout = .milliseconds(50)
            #expect(await self.pool.perform(request).failure == .idle)
        }
    }

    @Test func failedConnectHasItsReason() async throws {
        var request = ExchangeRequest(ServerEndpoint(.http, host: "127.0.0.1", port: 1))
        let refused = await self.pool.perform(request)
        #expect(refused.failure == .connecting(.refused))
        for failure in [ResolutionFailure.nameNotFound, .temporarilyUnavailable] {
            var settings = PoolSettings()
            settings.resolve = { _, _, answer in answer(.failure(failure)) }
            request.origin = ServerEndpoint(.http, host: "nowhere.test")
            let recorder = await ConnectionPool(settings: settings).perform(request)
            #expect(recorder.failure == .connecting(.nameResolution(failure)))
            #expect(recorder.metrics?.timings.lookupEnd != nil)
            #expect(recorder.metrics?.timings.connectStart == nil)
        }
    }

    @Test func unansweredNameLookupTimesOut() async throws {
        var settings = PoolSettings()
        settings.resolve = { _, _, _ in }
        var request = ExchangeRequest(ServerEndpoint(.http, host: "slow.test"))
        request.connectTimeout = .milliseconds(20)
        let recorder = await ConnectionPool(settings: settings).perform(request)
        #expect(recorder.failure == .connecting(.deadlinePassed(.resolving)))
    }

    @Test func forbiddenAddressIsNotConnectedTo() async throws {
        let server = try await RawServer([[.request, .send(Self.ok)]])
        let asked = Mutex<[String]>([])
        var settings = PoolSettings()
        settings.resolve = { _, port, answer in
            answer(.success([.ipv4(address: 0x7F00_0002, port: port), .ipv4(address: 0x7F00_0001, port: port)]))
        }
        settings.admits = { address, host in
            asked.withLock { $0.append("\(host) \(address)") }
            return address == .ipv4(address: 0x7F00_0001, port: server.port)
        }
        var request = server.request()
        request.origin.host = "two.test"
        #expect(await ConnectionPool(settings: settings).perform(request).text == "ok")
        #expect(asked.withLock { $0 } == ["two.test 127.0.0.2:\(server.port)", "two.test 127.0.0.1:\(server.port)"])
        settings.admits = { _, _ in false }
        #expect(await ConnectionPool(settings: settings).perform(request).failure == .notAdmitted)
        // A numeric address needs no name lookup.
        #expect(await ConnectionPool(settings: settings).perform(server.request()).failure == .notAdmitted)
    }

    @Test func namesAreResolvedAndTheirAddressesTried() async throws {
        let server = try await RawServer([[.request, .send(Self.ok)]])
        var settings = PoolSettings()
        settings.resolve = { _, port, answer in
            // The first two addresses have no listener.
            answer(
                .success([
                    .ipv6(high: 0, low: 1, scope: 0, port: port), .ipv4(address: 0x7F00_0002, port: port),
                    .ipv4(address: 0x7F00_0001, port: port),
                ]))
        }
        var request = server.request()
        request.origin.host = "three.test"
        let recorder = await ConnectionPool(settings: settings).perform(request)
        #expect(recorder.text == "ok")
        #expect(server.received[0].contains("Host: three.test:\(server.port)\r\n"))
        let timings = try #require(recorder.metrics?.timings)
        #expect(timings.lookupStart != nil)
        #expect(timings.connectStart == timings.lookupEnd)
    }

    @Test func onlyPermittedAddressesAreTried() async throws {
        let denied = StreamTransport.SocketAddress.ipv4(address: 0xA9FE_A9FE, port: 80)
        var settings = PoolSettings()
        settings.resolve = { _, _, answer in answer(.success([denied])) }
        settings.admits = { address, host in host == "named.test" || address != denied }
        for host in ["metadata.test", "169.254.169.254"] {
            let request = ExchangeRequest(ServerEndpoint(.http, host: host))
            let recorder = await ConnectionPool(settings: settings).perform(request)
            #expect(recorder.failure == .notAdmitted)
        }
        let server = try await RawServer([[.request, .send(Self.ok)]])
        let port = UInt16(server.port)
        settings.resolve = { _, _, answer in
            answer(.success([denied, .ipv4(address: 0x7F00_0001, port: port)]))
        }
        var request = server.request()
        request.origin.host = "two.test"
        #expect(await ConnectionPool(settings: settings).perform(request).text == "ok")
    }

    @Test func invalidRequestIsNotSent() async throws {
        var request = ExchangeRequest(ServerEndpoint(.http, host: "a.test"))
        request.head.fields = FieldLines([FieldLine("A", "b\r\nC: d")])
        #expect(await self.pool.perform(request).failure == .request(.fieldValue))
    }
}
