import TLSEngine
import TestSupport
import Testing

@Suite("A client's verification of servers, RFC 5280, RFC 9525, RFC 7469")
struct VerificationTests {
    @Test(arguments: ["server.test", "SERVER.test", "server.test.", "a.wild.test", "127.0.0.1", "::1", "[::1]"])
    func namesAndAddressesOfTheCertificateAreAccepted(_ name: String) throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(), name: name)
        pair.run()
        #expect(pair.client.metadata != nil, "\(String(describing: pair.client.failure))")
    }

    @Test(arguments: [
        ("other.test", Int32(62)), ("wild.test", 62), ("a.b.wild.test", 62), ("127.0.0.2", 64), ("::2", 64),
    ])
    func otherNameOrAddressIsRefused(_ name: String, _ code: Int32) throws {
        let pair = try SecurePair(Fixture.client(), Fixture.server(), name: name)
        pair.run()
        try self.expectRefusal(pair, code: code, alert: "bad_certificate")
    }

    @Test func wildcardForAPartOfALabelIsRefused() throws {
        let certificate = try Fixture.all().authority.issue("s*.part.test")
        let pair = try SecurePair(Fixture.client(), Fixture.server([certificate]), name: "server.part.test")
        pair.run()
        try self.expectRefusal(pair, code: 62, alert: "bad_certificate")
    }

    @Test func nameInTheSubjectDoesNotCount() throws {
        let certificate = try Fixture.all().authority.issue(TestCertificateProfile("server.test"))
        let pair = try SecurePair(Fixture.client(), Fixture.server([certificate]))
        pair.run()
        try self.expectRefusal(pair, code: 62, alert: "bad_certificate")
    }

    @Test(arguments: TLSVersion.both)
    func expiredCertificateIsRefused(_ version: TLSVersion) throws {
        let certificate = try Fixture.all().authority.issue(.expired("server.test"))
        let pair = try SecurePair(Fixture.client(), Fixture.server([certificate], version))
        pair.run()
        try self.expectRefusal(pair, code: 10, alert: "certificate_expired")
        #expect(pair.client.failure?.description.contains("certificate has expired") == true)
    }

    @Test func selfSignedCertificateIsRefused() throws {
        let certificate = try TestCertificate(TestCertificateProfile("server.test", names: ["server.test"]))
        let pair = try SecurePair(Fixture.client(), Fixture.server([certificate]))
        pair.run()
        try self.expectRefusal(pair, code: 18, alert: "unknown_ca")
    }

    @Test func unknownAuthorityIsRefused() throws {
        let certificate = try Fixture.all().otherAuthority.issue("server.test")
        let pair = try SecurePair(Fixture.client(), Fixture.server([certificate]))
        pair.run()
        try self.expectRefusal(pair, code: 20, alert: "unknown_ca")
    }

    @Test func certificateForClientsOnlyIsRefused() throws {
        var profile = TestCertificateProfile("server.test", names: ["server.test"])
        profile.usage = "clientAuth"
        let pair = try SecurePair(Fixture.client(), Fixture.server([Fixture.all().authority.issue(profile)]))
        pair.run()
        try self.expectRefusal(pair, code: 26, alert: "unsupported_certificate")
    }

    @Test func serversOwnCertificateCanBeAnAnchor() throws {
        let certificate = try Fixture.all().otherAuthority.issue("server.test")
        var client = TLSConfiguration.client()
        client.trust = .only([.pem(Array(certificate.certificatePEM.utf8))])
        let pair = try SecurePair(client, Fixture.server([certificate]))
        pair.run()
        #expect(pair.client.metadata != nil)
    }

    @Test func anchorCanBeDER() throws {
        var client = TLSConfiguration.client()
        client.trust = .only([.der(try Fixture.all().authority.certificate.der)])
        let pair = try SecurePair(client, Fixture.server())
        pair.run()
        #expect(pair.client.metadata != nil)
    }

    @Test func testCertificateIsNotTrustedByDefault() throws {
        let pair = try SecurePair(.client(), Fixture.server())
        pair.run()
        #expect(pair.client.metadata == nil)
        let kind = try #require(pair.client.failure?.kind)
        guard case .verification = kind else {
            Issue.record("failed as \(kind)")
            return
        }
    }

    @Test func anchorsAreAddedToTheSystemsRoots() throws {
        var client = TLSConfiguration.client()
        client.trust = .systemAnd([Fixture.source(try Fixture.all().authority)])
        let pair = try SecurePair(client, Fixture.server())
        pair.run()
        #expect(pair.client.metadata != nil)
    }

    @Test func verificationNeedsANameByDefault() throws {
        #expect(throws: TLSFailure.self) { try SecurePair(Fixture.client(), Fixture.server(), name: nil) }
        var client = try Fixture.client()
        client.checksServerName = false
        let pair = try SecurePair(client, Fixture.server(), name: nil)
        pair.run()
        #expect(pair.client.metadata != nil)
    }

    @Test(arguments: ["", "a b", "b\u{E9}", "a\0.test", String(repeating: "a", count: 300)])
    func invalidServerNameIsRefused(_ name: String) throws {
        let context = try TLSContext(Fixture.client())
        #expect { try SecureConnection(context, serverName: name) } throws: {
            ($0 as? TLSFailure)?.kind == .configuration
        }
    }

    @Test func anyCertificateIsAcceptedWithoutVerification() throws {
        var client = TLSConfiguration.client()
        client.peerVerification = .none
        let certificate = try TestCertificate(.expired("elsewhere.test"))
        let pair = try SecurePair(client, Fixture.server([certificate]))
        pair.run()
        #expect(pair.client.metadata?.peerChain == [certificate.der])
    }

    private func expectRefusal(_ pair: SecurePair, code: Int32, alert: String) throws {
        let failure = try #require(pair.client.failure)
        guard case .verification(let result) = failure.kind else {
            Issue.record("failed as \(failure.kind)")
            return
        }
        #expect(result.code == code, "\(result)")
        #expect(failure.alert?.name == alert)
        #expect(failure.alert?.origin == .ours)
        #expect(pair.client.metadata == nil)
        #expect(pair.server.failure?.kind == .peerAlert)
        #expect(pair.server.failure?.alert?.name == alert)
    }
}
