import TLSEngine
import TestSupport
import Testing

@Suite("Names in certificates")
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

    /// RFC 5929 §4.1: by the hash of the signature, which is ECDSA with SHA-256 here.
    @Test func channelBindingIsTheDigestOfTheCertificate() throws {
        let certificate = try self.foreign()
        let expected = Array("tls-server-end-point:".utf8) + SHA256Twin.digest(certificate)
        #expect(ChannelBinding.serverEndPoint(certificate: certificate) == expected)
        for wrong in [[], [0x30], Array("no certificate".utf8)] {
            #expect(ChannelBinding.serverEndPoint(certificate: wrong) == nil)
        }
    }

    @Test func invalidCertificateHasNoNames() throws {
        let bytes = try self.foreign()
        for wrong in [[], [0x30], Array("no certificate".utf8), Array(bytes.dropLast())] {
            #expect(CertificateNames(der: wrong) == nil)
        }
    }
}
