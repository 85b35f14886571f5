import TLSEngine
import TestSupport
import Testing

@Suite("Handshake and records, RFC 8446 and RFC 5246")
struct HandshakeTests {
    @Test(arguments: TLSVersion.both)
    func bothSidesAgreeOnTheFacts(_ version: TLSVersion) throws {
        var client = try Fixture.client()
        client.applicationProtocols = ["h2", "http/1.1"]
        var server = try Fixture.server(version)
        server.applicationProtocols = ["http/1.1"]
        let pair = try SecurePair(client, server)
        pair.run()
        let metadata = try #require(pair.client.metadata)
        #expect(metadata.version == version)
        #expect(metadata.applicationProtocol == "http/1.1")
        #expect(metadata.serverName == "server.test")
        #expect(metadata.cipherName.hasPrefix("TLS_"))
        #expect(metadata.cipherIdentifier >> 8 == (version == .tls13 ? 0x13 : 0xC0))
        #expect(metadata.peerChain.count == 2)
        #expect(metadata.peerChain.first == (try Fixture.all().server.der))
        #expect(!metadata.resumed)
        let mirrored = try #require(pair.server.metadata)
        #expect(mirrored.applicationProtocol == "http/1.1")
        #expect(mirrored.serverName == "server.test")
        #expect(mirrored.cipherIdentifier == metadata.cipherIdentifier)
        #expect(mirrored.peerChain.isEmpty)
        #expect(pair.keptPromise)
    }

    @Test(arguments: TLSVersion.both)
    func staleErrorsOfTheQueueAreIgnored(_ version: TLSVersion) throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(version))
        for bytes in [[UInt8(1)], [2]] {
            let wrong = TestCertificateProfile("wrong", addresses: ["no address"])
            #expect(throws: TestCertificateFailure.self) { try Fixture.all().authority.issue(wrong) }
            try pair.client.write(bytes)
            // In single bytes, so that most calls need more input, which OpenSSL distinguishes from a failure by its error queue.
            pair.run(chunk: 1)
        }
        #expect(pair.client.metadata != nil)
        #expect(pair.server.received == [1, 2])
        #expect(pair.server.failure == nil)
    }

    @Test(arguments: TLSVersion.both, [1, 7, 1000, Int.max])
    func bytesGoBothWaysInAnySplit(_ version: TLSVersion, _ chunk: Int) throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(version))
        pair.run(chunk: chunk)
        let up = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let down = (0..<5_000).map { UInt8(truncatingIfNeeded: $0 &* 17) }
        try pair.client.write(up)
        try pair.server.write(down)
        pair.run(chunk: chunk)
        #expect(pair.server.received == up)
        #expect(pair.client.received == down)
        #expect(pair.keptPromise)
    }
}
