import TLSEngine
import TestSupport
import Testing

@Suite("Client certificates, RFC 8446 §4.3.2 and RFC 5246 §7.4.4")
struct ClientCertificateTests {
    @Test(arguments: TLSVersion.both)
    func requiredClientCertificateIsVerified(_ version: TLSVersion) throws {
        let pair = try self.pair(version, .required) { client in
            client.identities = [try Fixture.identity(Fixture.all().client)]
        }
        pair.run()
        #expect(pair.server.metadata?.peerChain == [try Fixture.all().client.der])
        #expect(pair.client.metadata != nil)
    }

    @Test(arguments: TLSVersion.both)
    func clientWithoutACertificateIsRefused(_ version: TLSVersion) throws {
        let pair = try self.pair(version, .required) { _ in }
        pair.run()
        #expect(pair.server.metadata == nil)
        #expect(pair.server.failure?.kind == .handshake)
        let alert = version == .tls13 ? "certificate_required" : "handshake_failure"
        #expect(pair.server.failure?.alert?.name == alert)
        #expect(pair.client.failure?.kind == .peerAlert)
        #expect(pair.client.failure?.alert?.name == alert)
    }

    @Test(arguments: TLSVersion.both)
    func optionalClientCertificateMayBeMissing(_ version: TLSVersion) throws {
        let pair = try self.pair(version, .optional) { _ in }
        pair.run()
        #expect(pair.server.metadata?.peerChain == [])
    }

    @Test(arguments: TLSVersion.both, [PeerVerification.optional, .required])
    func aServerRefusesACertificateOfAnotherAuthority(_ version: TLSVersion, _ asked: PeerVerification) throws {
        let stranger = try Fixture.all().otherAuthority.issue("client.test")
        let pair = try self.pair(version, asked) { $0.identities = [try Fixture.identity(stranger)] }
        pair.run()
        #expect(pair.server.metadata == nil)
        #expect(pair.server.failure?.alert?.name == "unknown_ca")
        #expect(pair.client.failure?.alert == TLSAlert(code: 48, origin: .peer))
    }

    @Test(arguments: TLSVersion.both)
    func clientChoosesACertificateOnRequest(_ version: TLSVersion) throws {
        let issued = try Fixture.all().authority.intermediate("Client Intermediate").issue("client.test")
        let pair = try self.pair(version, .required) { $0.delegatesClientCertificate = true }
        pair.run()
        let issuers = pair.client.events.compactMap {
            if case .clientCertificateRequested(let issuers) = $0 { issuers } else { nil }
        }
        #expect(issuers == [[Self.testRootName]])
        #expect(pair.client.metadata == nil)
        pair.client.connection.provideClientCertificate(try Fixture.identity(issued))
        pair.nudge()
        #expect(pair.client.metadata != nil)
        #expect(pair.server.metadata?.peerChain.first == issued.der)
        #expect(pair.server.metadata?.peerChain.count == 2)
    }

    @Test(arguments: TLSVersion.both)
    func clientMayChooseNoCertificate(_ version: TLSVersion) throws {
        let pair = try self.pair(version, .optional) { $0.delegatesClientCertificate = true }
        pair.run()
        pair.client.connection.provideClientCertificate(nil)
        pair.nudge()
        #expect(pair.client.metadata != nil)
        #expect(pair.server.metadata?.peerChain == [])
    }

    /// X.501 Name with CN=Test Root as a UTF8String (X.690): SEQUENCE { SET { SEQUENCE { 2.5.4.3, "Test Root" } } }.
    private static let testRootName: [UInt8] =
        [0x30, 0x14, 0x31, 0x12, 0x30, 0x10, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0C, 0x09] + Array("Test Root".utf8)

    private func pair(
        _ version: TLSVersion, _ asked: PeerVerification, _ change: (inout TLSConfiguration) throws -> Void
    ) throws -> SecurePair {
        var client = try Fixture.client()
        try change(&client)
        var server = try Fixture.server(version)
        server.peerVerification = asked
        server.trust = .only([Fixture.source(try Fixture.all().authority)])
        return try SecurePair(client, server)
    }
}
