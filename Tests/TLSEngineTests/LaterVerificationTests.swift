import TLSEngine
import TestSupport
import Testing

@Suite("Verification of a chain against other roots")
struct LaterVerificationTests {
    private let untrusted = VerificationResult(code: 20, text: "unknown", depth: 0)

    private func request(
        _ certificate: TestCertificate, chain: [TestCertificate] = [], name: String? = "server.test"
    ) -> VerificationRequest {
        VerificationRequest(
            peerChain: ([certificate] + chain).map(\.der), result: self.untrusted, serverName: name)
    }

    private func code(_ request: VerificationRequest, by trust: TrustAnchors) throws -> Int32 {
        try request.evaluate(against: trust).code
    }

    private func only(_ certificates: TestCertificate...) -> TrustAnchors {
        .only(certificates.map { .der($0.der) })
    }

    @Test func chainIsGoodByTheAuthorityThatSignedIt() throws {
        let set = try Fixture.all()
        let certificate = try set.authority.issue("server.test")
        #expect(try self.request(certificate).evaluate(against: .only([Fixture.source(set.authority)])).isValid)
        #expect(try self.code(self.request(certificate), by: self.only(set.authority.certificate)) == 0)
        #expect(try self.code(self.request(certificate), by: self.only(set.otherAuthority.certificate)) == 20)
        let both = self.only(set.otherAuthority.certificate, set.authority.certificate)
        #expect(try self.code(self.request(certificate), by: both) == 0)
    }

    @Test func laterVerificationContinuesWithBufferedInput() throws {
        let authority = try TestCertificateAuthority("Root")
        let between = try authority.intermediate("Between")
        let certificate = try between.issue("server.test")
        let roots = self.only(authority.certificate)
        #expect(try self.code(self.request(certificate, chain: [between.certificate]), by: roots) == 0)
        #expect(try self.code(self.request(certificate), by: roots) == 20)
        // A listed certificate is trusted even if it is not self-signed.
        #expect(try self.code(self.request(certificate), by: self.only(between.certificate)) == 0)
        #expect(try self.code(self.request(certificate), by: self.only(certificate)) == 0)
    }

    @Test(arguments: [
        ("server.test", Int32(0)), ("SERVER.test.", 0), ("a.wild.test", 0), ("127.0.0.1", 0), ("[::1]", 0),
        ("other.test", 62), ("a.b.wild.test", 62), ("127.0.0.2", 64),
    ])
    func chainIsJudgedByTheRequestedName(_ name: String, _ code: Int32) throws {
        let set = try Fixture.all()
        let profile = TestCertificateProfile(
            "server.test", names: ["server.test", "*.wild.test"], addresses: ["127.0.0.1", "::1"])
        let request = self.request(try set.authority.issue(profile), name: name)
        #expect(try self.code(request, by: self.only(set.authority.certificate)) == code)
    }

    @Test func chainIsGoodForAnyNameWithoutARequestedOne() throws {
        let set = try Fixture.all()
        let request = self.request(try set.authority.issue("whoever.test"), name: nil)
        #expect(try self.code(request, by: self.only(set.authority.certificate)) == 0)
    }

    @Test func chainMustBeAServersAndUnexpired() throws {
        let set = try Fixture.all()
        let roots = self.only(set.authority.certificate)
        #expect(try self.code(self.request(set.authority.issue(.expired("server.test"))), by: roots) == 10)
        var profile = TestCertificateProfile("server.test", names: ["server.test"])
        (profile.validFrom, profile.validUntil) = (3600, 7200)
        #expect(try self.code(self.request(set.authority.issue(profile)), by: roots) == 9)
        profile = TestCertificateProfile("server.test", names: ["server.test"])
        profile.usage = "clientAuth"
        #expect(try self.code(self.request(set.authority.issue(profile)), by: roots) == 26)
    }

    @Test func unreadableRootsAreAFailure() throws {
        let set = try Fixture.all()
        let request = self.request(set.server)
        for bytes in [[], [1, 2, 3], Array("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n".utf8)] {
            let failure = #expect(throws: TLSFailure.self) { try request.evaluate(against: .only([.pem(bytes)])) }
            #expect(failure?.kind == .unreadableCredentials)
        }
        for chain in [[], [[1, 2, 3]], [set.server.der, [0x30]]] as [[[UInt8]]] {
            let broken = VerificationRequest(peerChain: chain, result: self.untrusted, serverName: nil)
            let failure = #expect(throws: TLSFailure.self) {
                try broken.evaluate(against: self.only(set.authority.certificate))
            }
            #expect(failure?.kind == .unreadableCredentials)
        }
    }
}
