import TLSEngine
import TestSupport
import Testing

@Suite("Whom a certificate names")
struct CertificateNamesTests {
    /// The chain that the client sees in a handshake with `ForeignMaterial`.
    private func foreign() throws -> [UInt8] {
        let identity = try TLSIdentity(
            certificates: Array(ForeignMaterial.certificate.utf8), key: Array(ForeignMaterial.key.utf8))
        var client = TLSConfiguration.client()
        client.peerVerification = .none
        let pair = try SecurePair(client, .server([identity]))
        pair.run()
        return try #require(pair.client.metadata?.peerChain.first)
    }

    @Test func certificateNamesItsSubjectAlternativeNamesAndKey() throws {
        let names = try #require(CertificateNames(der: try self.foreign()))
        #expect(names.subject == "CN=fixture.test")
        #expect(names.alternativeNames == ["fixture.test"])
        #expect(names.pin == PublicKeyPin(ForeignMaterial.pin))
    }

    @Test func invalidCertificateHasNoNames() throws {
        let bytes = try self.foreign()
        for wrong in [[], [0x30], Array("no certificate".utf8), Array(bytes.dropLast())] {
            #expect(CertificateNames(der: wrong) == nil)
        }
    }
}
