import ByteKernels
import HTTPTransport
import StreamTransport
import Testing
import WireText

@Suite("Connections that leave HTTP, RFC 9110 §7.8", .timeLimit(.minutes(20)))
struct UpgradeTests {
    private static let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: talk\r\n\r\n"
    private let pool = ConnectionPool()

    private func request(_ server: RawServer, secure: Bool = false) throws -> ExchangeRequest {
        var request = secure ? server.secureRequest(try SecureFixture.client()) : server.request()
        request.head.fields = FieldLines([FieldLine("Connection", "Upgrade"), FieldLine("Upgrade", "talk")])
        return request
    }

    private func upgraded(_ entry: ExchangeRecorder.Entry) throws -> DetachedConnection {
        guard case .detached(let connection)? = entry.end else {
            Issue.record("\(String(describing: entry.end))")
            throw CancellationError()
        }
        return connection
    }

    private func adopt(_ connection: DetachedConnection, _ tunneler: UpgradeRecorder, says text: String = "") {
        connection.loop.execute {
            connection.handOver { transport, _ in
                tunneler.transport = transport
                transport.consumer = tunneler
                transport.resumeReading()
                if !text.isEmpty { Array(text.utf8).withRawSpan { _ = transport.write($0) } }
                transport.awaitProgress()
            }
        }
    }

    @Test(arguments: [false, true])
    func upgradedConnectionKeepsEarlyBytes(_ secure: Bool) async throws {
        let server = try await RawServer(
            [[.request, .send(Self.switching + "early"), .receive("hello"), .send(" and late"), .finish]],
            tls: secure ? SecureFixture.server() : nil)
        let entry = await self.pool.perform(try self.request(server, secure: secure))
        #expect(entry.head?.status == 101)
        let connection = try self.upgraded(entry)
        #expect((connection.metadata.tls != nil) == secure)
        let tunneler = UpgradeRecorder()
        self.adopt(connection, tunneler, says: "hello")
        await tunneler.inputEnded.pass()
        #expect(tunneler.heard == "early and late")
        connection.loop.execute { tunneler.transport?.close(linger: .seconds(1)) }
        await tunneler.ended.pass()
        #expect(tunneler.howItEnded == .closed)
    }

    @Test func upgradedConnectionCanBeTakenLater() async throws {
        let server = try await RawServer([[.request, .send(Self.switching), .send("one"), .receive("x"), .send("two")]])
        let connection = try self.upgraded(await self.pool.perform(try self.request(server)))
        // Another exchange in between: the pool does not own the upgraded connection any more.
        let other = try await RawServer([[.request, .send("HTTP/1.1 204 No\r\n\r\n")]])
        #expect(await self.pool.perform(other.request()).trailers == [])
        let tunneler = UpgradeRecorder(mark: "two")
        self.adopt(connection, tunneler, says: "x")
        await tunneler.heardMark.pass()
        await tunneler.progressed.pass()
        #expect(tunneler.heard == "onetwo")
        connection.loop.execute { tunneler.transport?.reset() }
        await tunneler.ended.pass()
        #expect(tunneler.howItEnded == .abandoned)
    }

    @Test func upgradedConnectionDoesNotCountAgainstTheLimit() async throws {
        var settings = PoolSettings()
        settings.connectionsPerHost = 1
        let pool = ConnectionPool(settings: settings)
        let server = try await RawServer([[.request, .send(Self.switching)], [.request, .send(Self.switching)]])
        for _ in 0..<2 { try self.upgraded(await pool.perform(try self.request(server))).close() }
        #expect(server.connections == 2)
    }

    @Test func upgradedConnectionEndsInOneDirectionAfterTheOther() async throws {
        let heard = Gate()
        let server = try await RawServer([
            [.request, .send(Self.switching), .receive("last words"), .open(heard), .send("answer"), .close]
        ])
        let connection = try self.upgraded(await self.pool.perform(try self.request(server)))
        let tunneler = UpgradeRecorder()
        self.adopt(connection, tunneler, says: "last words")
        connection.loop.execute { tunneler.transport?.shutdownOutput() }
        await heard.pass()
        await tunneler.inputEnded.pass()
        #expect(tunneler.heard == "answer")
    }

    @Test func endBeforeTheHandOverReachesTheNextOwner() async throws {
        let reset = Gate()
        let gone = Gate()
        let server = try await RawServer([[.request, .send(Self.switching), .wait(reset), .reset, .open(gone)]])
        let connection = try self.upgraded(await self.pool.perform(try self.request(server)))
        reset.open()
        await gone.pass()
        // Another exchange gives the pool's loop turns in which it sees the reset.
        let other = try await RawServer([[.request, .send("HTTP/1.1 204 No\r\n\r\n")]])
        #expect(await self.pool.perform(other.request()).trailers == [])
        let tunneler = UpgradeRecorder()
        self.adopt(connection, tunneler)
        await tunneler.ended.pass()
        #expect(tunneler.howItEnded == .failed(.reset))
    }

    @Test func refusedUpgradeIsAResponse() async throws {
        let server = try await RawServer([
            [.request, .send("HTTP/1.1 426 No\r\nUpgrade: other\r\nContent-Length: 2\r\n\r\nno")]
        ])
        let entry = await self.pool.perform(try self.request(server))
        #expect(entry.head?.status == 426)
        #expect(entry.text == "no")
    }
}
