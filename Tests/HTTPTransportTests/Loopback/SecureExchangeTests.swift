import HTTPTransport
import StreamTransport
import TLSEngine
import Testing

@Suite("Exchanges over TLS", .timeLimit(.minutes(20)))
struct SecureExchangeTests {
    private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    private let pool = ConnectionPool()

    @Test func secureConnectionIsReused() async throws {
        let server = try await RawServer(
            [[.request, .send(Self.ok), .request, .send(Self.ok)]],
            tls: SecureFixture.server { $0.applicationProtocols = ["http/1.1"] })
        let context = try SecureFixture.client { $0.applicationProtocols = ["http/1.1"] }
        let first = await self.pool.perform(server.secureRequest(context))
        let second = await self.pool.perform(server.secureRequest(context))
        #expect(first.text == "ok")
        #expect(second.text == "ok")
        #expect(server.connections == 1)
        #expect(second.connections.first?.tls?.version == .tls13)
        #expect(second.connections.first?.tls?.applicationProtocol == "http/1.1")
        let timings = try #require(first.metrics?.timings)
        let start = try #require(timings.secureStart)
        let end = try #require(timings.secureEnd)
        #expect(start <= end)
        #expect(timings.connectEnd.map { $0 >= end } == true)
    }

    @Test func contextsShareNoConnection() async throws {
        let server = try await RawServer(
            [[.request, .send(Self.ok)], [.request, .send(Self.ok)]], tls: SecureFixture.server())
        for _ in 0..<2 {
            #expect(await self.pool.perform(server.secureRequest(try SecureFixture.client())).text == "ok")
        }
        #expect(server.connections == 2)
    }

    @Test func verificationFailureHasItsReason() async throws {
        let server = try await RawServer([[.request, .send(Self.ok)]], tls: SecureFixture.server())
        let root = try SecureFixture.otherRoot()
        let recorder = await self.pool.perform(
            server.secureRequest(try SecureFixture.client { $0.trust = .only([root]) }))
        guard case .securing(let failure)? = recorder.failure, case .verification(let result) = failure.kind else {
            Issue.record("\(String(describing: recorder.end))")
            return
        }
        #expect(!result.isValid)
        #expect(server.received == [""])
        #expect(recorder.metrics?.timings.secureStart != nil)
        #expect(recorder.metrics?.timings.secureEnd == nil)
    }

    @Test func consumerDecidesAboutTheCertificate() async throws {
        let server = try await RawServer([[.request, .send(Self.ok)], [], []], tls: SecureFixture.server())
        let root = try SecureFixture.otherRoot()
        let context = try SecureFixture.client {
            $0.trust = .only([root])
            $0.delegatesVerification = true
        }
        #expect(await self.pool.perform(server.secureRequest(context), ExchangeRecorder(verify: .accept)).text == "ok")
        var request = server.secureRequest(context)
        request.needsFreshConnection = true
        let refused = await self.pool.perform(request, ExchangeRecorder(verify: .reject))
        guard case .securing(let failure)? = refused.failure else { return #expect(Bool(false)) }
        #expect(failure.kind == .rejected)
        // Cancelled while the handler is called.
        let silent = ExchangeRecorder(verify: nil)
        let exchange = self.pool.exchange(request, consumer: silent)
        exchange.start()
        exchange.cancel()
        #expect(await silent.whole().failure == .cancelled)
    }

    @Test func clientCertificateIsShownWhenAsked() async throws {
        let server = try await RawServer(
            [[.request, .send(Self.ok)]], tls: SecureFixture.server { $0.peerVerification = .required })
        let context = try SecureFixture.client { $0.delegatesClientCertificate = true }
        let identity = try SecureFixture.clientIdentity()
        #expect(
            await self.pool.perform(server.secureRequest(context), ExchangeRecorder(identity: identity)).text == "ok")
    }

    @Test func truncationDiffersFromTheEndOfTheContent() async throws {
        let answer = "HTTP/1.0 200 OK\r\n\r\nall of it"
        let context = try SecureFixture.client()
        let honest = try await RawServer([[.request, .send(answer), .finish]], tls: SecureFixture.server())
        let whole = await self.pool.perform(honest.secureRequest(context))
        #expect(whole.text == "all of it")
        #expect(whole.trailers == [])
        let cut = try await RawServer([[.request, .send(answer), .cut]], tls: SecureFixture.server())
        let part = await self.pool.perform(cut.secureRequest(context))
        #expect(part.failure == .truncated(received: 9, expected: nil, cause: .truncated))
    }

    @Test func wholeResponseNeedsNoCloseNotify() async throws {
        let server = try await RawServer([[.request, .send(Self.ok), .cut]], tls: SecureFixture.server())
        #expect(await self.pool.perform(server.secureRequest(try SecureFixture.client())).text == "ok")
    }

    @Test func slowHandshakeIsGivenUp() async throws {
        let server = try await RawServer([[]])
        var request = server.secureRequest(try SecureFixture.client())
        request.secure?.timeout = .milliseconds(20)
        #expect(await self.pool.perform(request).failure == .connecting(.deadlinePassed(.securing)))
    }

    @Test func serverWithoutTLSIsAFailure() async throws {
        let server = try await RawServer([[.send("HTTP/1.1 400 Bad Request\r\n\r\n"), .finish]])
        guard case .securing? = await self.pool.perform(server.secureRequest(try SecureFixture.client())).failure else {
            return #expect(Bool(false))
        }
    }

    @Test func largeBodiesGoBothWaysOverTLS() async throws {
        let size = 4 << 20
        let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 13) }
        let server = try await RawServer(
            [
                [
                    .request, .receiveBytes(size), .send("HTTP/1.1 200 OK\r\nContent-Length: \(size)\r\n\r\n"),
                    .sendBytes(body),
                ]
            ], tls: SecureFixture.server())
        var request = server.secureRequest(try SecureFixture.client(), method: "POST")
        request.body = .bytes(body)
        let recorder = await self.pool.perform(request)
        #expect(recorder.content == body)
        #expect(server.bytes(0).suffix(size).elementsEqual(body))
    }
}
