import TLSEngine
import TestSupport
import Testing

@Suite("Session resumption, RFC 5077 and RFC 8446 §2.2")
struct ResumptionTests {
    static let policies: [ResumptionPolicy] = [.tickets, .serverCache(limit: 10)]

    @Test(arguments: TLSVersion.both, policies)
    func sessionIsResumed(_ version: TLSVersion, _ policy: ResumptionPolicy) throws {
        var configuration = try Fixture.server(version)
        configuration.resumption = policy
        let server = try TLSContext(configuration)
        let client = try TLSContext(Fixture.client())
        #expect(try !self.connect(client, server, "a"))
        #expect(try self.connect(client, server, "a"))
        #expect(try self.connect(client, server, "a"))
        #expect(try !self.connect(client, server, "b"))
        #expect(try !self.connect(client, server, nil))
    }

    @Test(arguments: TLSVersion.both)
    func aResumedSessionKeepsNamesAndCertificates(_ version: TLSVersion) throws {
        let server = try TLSContext(Fixture.server(version))
        let client = try TLSContext(Fixture.client())
        _ = try self.connect(client, server, "a")
        let pair = try SecurePair(client: client, server: server, key: "a")
        pair.run()
        #expect(pair.client.metadata?.resumed == true)
        #expect(pair.client.metadata?.peerChain.first == (try Fixture.all().server.der))
        #expect(pair.server.metadata?.serverName == "server.test")
        #expect(pair.client.metadata?.serverName == "server.test")
    }

    @Test(arguments: TLSVersion.both)
    func resumptionIsOffIfEitherSideRefusesIt(_ version: TLSVersion) throws {
        var off = try Fixture.server(version)
        off.resumption = .off
        var clientOff = try Fixture.client()
        clientOff.resumption = .off
        let contexts = [
            (try TLSContext(Fixture.client()), try TLSContext(off)),
            (try TLSContext(clientOff), try TLSContext(Fixture.server(version))),
        ]
        for (client, server) in contexts {
            #expect(try !self.connect(client, server, "a"))
            #expect(try !self.connect(client, server, "a"))
            #expect(client.cachedSessionCount == 0)
        }
    }

    @Test func aTicketIsGivenOutOnce() throws {
        let server = try TLSContext(Fixture.server(.tls13))
        let client = try TLSContext(Fixture.client())
        _ = try self.connect(client, server, "a")
        #expect(client.cachedSessionCount == 2)
        let first = try SecurePair(client: client, server: server, key: "a")
        let second = try SecurePair(client: client, server: server, key: "a")
        #expect(client.cachedSessionCount == 0)
        let third = try SecurePair(client: client, server: server, key: "a")
        for pair in [first, second, third] { pair.run() }
        #expect([first, second, third].map { $0.client.metadata?.resumed } == [true, true, false])
    }

    @Test func aClientKeepsNoMoreThanItsLimit() throws {
        var configuration = try Fixture.client()
        configuration.clientSessionLimit = 3
        let client = try TLSContext(configuration)
        let server = try TLSContext(Fixture.server(.tls12))
        for key in 0..<5 { _ = try self.connect(client, server, "\(key)") }
        #expect(client.cachedSessionCount == 3)
        #expect(try !self.connect(client, server, "0"))
        #expect(try self.connect(client, server, "4"))
    }

    @Test(arguments: TLSVersion.both)
    func ticketsOutliveAReloadThatKeepsTheTrust(_ version: TLSVersion) throws {
        let server = try TLSContext(Fixture.server(version))
        let client = try TLSContext(Fixture.client())
        _ = try self.connect(client, server, "a")
        try server.reload(Fixture.server([Fixture.all().authority.issue("server.test")], version))
        #expect(try self.connect(client, server, "a"))
    }

    @Test(arguments: TLSVersion.both)
    func ticketsEndWithAReloadThatChangesClientVerification(_ version: TLSVersion) throws {
        let fixture = try Fixture.all()
        var configuration = try Fixture.server(version)
        configuration.peerVerification = .required
        configuration.trust = .only([Fixture.source(fixture.authority), Fixture.source(fixture.otherAuthority)])
        let server = try TLSContext(configuration)
        var clientConfiguration = try Fixture.client()
        clientConfiguration.identities = [try Fixture.identity(fixture.client)]
        let client = try TLSContext(clientConfiguration)
        _ = try self.connect(client, server, "a")
        #expect(try self.connect(client, server, "a"))
        configuration.trust = .only([Fixture.source(fixture.authority)])
        try server.reload(configuration)
        #expect(try !self.connect(client, server, "a"))
    }

    @Test func aReloadedClientForgetsSessionsOfAnotherTrust() throws {
        let server = try TLSContext(Fixture.server(.tls13))
        var configuration = try Fixture.client()
        let client = try TLSContext(configuration)
        _ = try self.connect(client, server, "a")
        try client.reload(configuration)
        #expect(client.cachedSessionCount == 2)
        configuration.trust = .only([Fixture.source(try Fixture.all().otherAuthority)])
        try client.reload(configuration)
        #expect(client.cachedSessionCount == 0)
    }

    /// Whether the handshake resumed a session; both sides must agree.
    private func connect(_ client: TLSContext, _ server: TLSContext, _ key: String?) throws -> Bool {
        let pair = try SecurePair(client: client, server: server, key: key)
        pair.run()
        let metadata = try #require(pair.client.metadata)
        #expect(pair.server.metadata?.resumed == metadata.resumed)
        return metadata.resumed
    }
}
