import TLSEngine
import TestSupport
import Testing

@Suite("Revocation lists, RFC 5280 §6.3")
struct RevocationTests {
    private let root: TestCertificateAuthority
    private let intermediate: TestCertificateAuthority
    private let leaf: TestCertificate

    init() throws {
        self.root = try TestCertificateAuthority("Revoking Root")
        self.intermediate = try self.root.intermediate("Revoking Intermediate")
        self.leaf = try self.intermediate.issue("server.test")
    }

    @Test func certificateThatNoListNamesIsAccepted() throws {
        let other = try self.intermediate.issue("other.test")
        #expect(try self.result(.peer(lists: [self.list(self.intermediate, [other])])) == nil)
    }

    @Test func revokedCertificateIsRefused() throws {
        #expect(try self.result(.peer(lists: [self.list(self.intermediate, [self.leaf])])) == 23)
    }

    @Test func certificateWithoutItsIssuersListIsRefused() throws {
        #expect(try self.result(.peer(lists: [self.list(self.root, [])])) == 3)
    }

    @Test func intermediatesAreCheckedOnlyIfRequested() throws {
        let lists = [try self.list(self.root, [self.intermediate.certificate]), try self.list(self.intermediate, [])]
        #expect(try self.result(.peer(lists: lists)) == nil)
        #expect(try self.result(.wholeChain(lists: lists)) == 23)
    }

    private func list(_ authority: TestCertificateAuthority, _ revoked: [TestCertificate]) throws -> CertificateSource {
        .pem(Array(try authority.revocationList(revoked).utf8))
    }

    /// The code of the refusal; `nil` after a successful handshake.
    private func result(_ revocation: RevocationChecking) throws -> Int32? {
        var client = TLSConfiguration.client()
        client.trust = .only([Fixture.source(self.root)])
        client.revocation = revocation
        let pair = try SecurePair(client, Fixture.server([self.leaf]))
        pair.run()
        guard case .verification(let result) = pair.client.failure?.kind else {
            #expect(pair.client.metadata != nil)
            return nil
        }
        return result.code
    }
}
