import TLSEngine
import TestSupport
import Testing

@Suite("A server with compact records continues without OpenSSL's connection")
struct RecordsTakenOverTests {
    static let suites = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"]
    static let policies: [ResumptionPolicy] = [.off, .tickets, .serverCache(limit: 10)]

    @Test(arguments: suites, [1, 7, Int.max])
    func bytesPassBothWaysInEverySuite(_ suite: String, _ chunk: Int) throws {
        var configuration = try Fixture.server(kind: .compactTLS13)
        configuration.cipherSuites = suite
        let pair = try SecurePair(Fixture.client(), configuration)
        // Some of it arrives together with the client's Finished.
        try pair.client.write([1, 2])
        try pair.server.write([3])
        pair.run(chunk: chunk)
        #expect(pair.server.metadata?.cipherName == suite)
        #expect(!pair.server.connection.holdsOpenSSLConnection)
        #expect(pair.client.connection.holdsOpenSSLConnection)
        for round in UInt8(4)..<9 {
            try pair.client.write([round, round])
            try pair.server.write([round])
            pair.run(chunk: chunk)
        }
        #expect(pair.server.received == [1, 2, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8])
        #expect(pair.client.received == [3, 4, 5, 6, 7, 8])
        #expect(pair.keptPromise)
    }

    @Test(arguments: policies)
    func recordsContinueAfterAnyNumberOfTickets(_ policy: ResumptionPolicy) throws {
        var configuration = try Fixture.server(kind: .compactTLS13)
        configuration.resumption = policy
        let server = try TLSContext(configuration)
        let client = try TLSContext(Fixture.client())
        for resumed in [false, policy != .off, policy != .off] {
            let pair = try SecurePair(client: client, server: server, key: "a")
            pair.run()
            #expect(pair.server.metadata?.resumed == resumed)
            #expect(!pair.server.connection.holdsOpenSSLConnection)
            try pair.server.write([9])
            pair.run()
            #expect(pair.client.received == [9])
            // The TLS session outlives its connection.
            pair.client.connection.closeOutput()
            pair.run()
        }
    }

    @Test(arguments: [true, false])
    func recordsAreTakenOverAfterALateDecision(_ asynchronous: Bool) throws {
        var configuration = try Fixture.server(kind: .compactTLS13)
        configuration.peerVerification = .required
        configuration.delegatesVerification = asynchronous
        configuration.trust = .only([Fixture.source(try Fixture.all().authority)])
        var showing = try Fixture.client()
        showing.identities = [try Fixture.identity(Fixture.all().client)]
        let pair = try SecurePair(showing, configuration)
        pair.run()
        try pair.client.write([1])
        pair.run()
        #expect((pair.server.request != nil) == asynchronous)
        pair.server.connection.resolveVerification(.accept)
        pair.nudge()
        #expect(!pair.server.connection.holdsOpenSSLConnection)
        #expect(pair.server.metadata?.peerChain.first == (try Fixture.all().client.der))
        try pair.server.write([2])
        pair.run()
        #expect(pair.server.received == [1])
        #expect(pair.client.received == [2])
    }

    @Test func recordsStayWithOpenSSLByDefault() throws {
        for kind in [ServerKind.tls12, .tls13] {
            let pair = try SecurePair(Fixture.client(), Fixture.server(kind: kind))
            pair.run()
            #expect(pair.server.metadata != nil)
            #expect(pair.server.connection.holdsOpenSSLConnection)
        }
        #expect(TLSConfiguration.server([]).recordLayer == .openSSL)
        #expect(TLSConfiguration.client().recordLayer == .openSSL)
    }

    @Test func connectionsThatNeedOpenSSLStayWithIt() throws {
        var old = try Fixture.server(.tls12)
        old.recordLayer = .compact
        var configuration = try Fixture.server(kind: .compactTLS13)
        configuration.cipherSuites = "TLS_AES_128_CCM_SHA256"
        var client = try Fixture.client()
        client.cipherSuites = "TLS_AES_128_CCM_SHA256"
        for pair in [try SecurePair(client, configuration), try SecurePair(Fixture.client(), old)] {
            pair.run()
            #expect(pair.server.connection.holdsOpenSSLConnection)
            try pair.client.write([1])
            try pair.server.write([2])
            pair.run()
            #expect(pair.server.received == [1])
            #expect(pair.client.received == [2])
        }
    }

    @Test(arguments: UInt64(0)..<6)
    func muchPassesInAnySplit(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let pair = try SecurePair(Fixture.client(), Fixture.server(kind: .compactTLS13))
        pair.run()
        let sent = generator.bytes(400_000)
        let longest = [100, 20_000, 100_000][Int(seed % 3)]
        for cut in generator.cuts(of: sent.count, longest: longest) {
            try pair.client.write(Array(sent[cut]))
            try pair.server.write(Array(sent[cut]))
        }
        pair.run(chunk: Int.random(in: 500...70_000, using: &generator))
        #expect(pair.server.received == sent)
        #expect(pair.client.received == sent)
        #expect(pair.keptPromise)
    }

    @Test(
        arguments: [
            ([0x14, 3, 3, 0, 1, 1], 10), ([0x15, 3, 3, 0, 2, 2, 0], 10), ([0x17, 3, 3, 0x41, 1], 22),
            ([0x17, 3, 3, 0, 1, 0], 20), ([0x47, 0x45, 0x54, 0x20, 0x2F], 10),
        ] as [([UInt8], UInt8)])
    func alertIsSentForAnInvalidRecord(_ wrong: ([UInt8], alert: UInt8)) throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(kind: .compactTLS13))
        pair.run()
        #expect(pair.server.deliver(wrong.0))
        #expect(pair.server.failure?.kind == .record)
        #expect(pair.server.failure?.alert == TLSAlert(code: wrong.alert, origin: .ours))
        #expect(throws: TLSFailure.self) { try pair.server.write([1]) }
        #expect(pair.server.deliver([1, 2, 3]))
        pair.run()
        #expect(pair.client.failure?.alert == TLSAlert(code: wrong.alert, origin: .peer))
    }

    @Test func alertOfTheClientIsReported() throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(kind: .compactTLS13))
        pair.run()
        #expect(pair.client.deliver([0x17, 3, 3, 0, 20] + [UInt8](repeating: 7, count: 20)))
        pair.run()
        #expect(pair.server.failure?.kind == .peerAlert)
        #expect(pair.server.failure?.alert == TLSAlert(code: 20, origin: .peer))
        #expect(pair.server.connection.pendingCiphertext == 0)
    }

    @Test func nothingIsSentAfterCloseNotify() throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(kind: .compactTLS13))
        pair.run()
        pair.server.connection.closeOutput()
        pair.run()
        #expect(pair.client.inputClosed)
        #expect(pair.server.deliver([0x14, 3, 3, 0, 1, 1]))
        #expect(pair.server.failure?.kind == .record)
        #expect(pair.server.failure?.alert == nil)
        #expect(pair.server.connection.pendingCiphertext == 0)
    }
}
