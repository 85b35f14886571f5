import TLSEngine
import TestSupport
import Testing

@Suite("Public key pins, RFC 7469")
struct PinningTests {
    /// RFC 7469 §2.1.5.
    private static let rfc = "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="

    @Test(arguments: [rfc, "sha256/\(rfc)", "pin-sha256=\"\(rfc)\""])
    func formsOfAPinAreRead(_ text: String) throws {
        let pin = try #require(PublicKeyPin(text))
        #expect(Array(pin.digest.prefix(4)) == [0x77, 0xAA, 0xB3, 0x46])
        #expect(pin.digest.last == 0x63)
        #expect(pin.description == "sha256/\(Self.rfc)")
        #expect(PublicKeyPin(digest: pin.digest) == pin)
    }

    @Test(arguments: [
        "", "abc", String(rfc.dropLast()), rfc + "=", "e" + rfc, rfc.replacing("d6", with: "d-"),
        rfc.replacing("mM=", with: "mN="), "sha1/\(rfc)",
    ])
    func invalidPinIsRefused(_ text: String) {
        #expect(PublicKeyPin(text) == nil)
    }

    @Test(arguments: [ForeignMaterial.pin, rfc])
    func pinMadeElsewhereIsCompared(_ text: String) throws {
        let identity = try TLSIdentity(
            certificates: Array(ForeignMaterial.certificate.utf8), key: Array(ForeignMaterial.key.utf8))
        var client = TLSConfiguration.client()
        client.peerVerification = .none
        client.pins = [try #require(PublicKeyPin(text))]
        let pair = try SecurePair(client, .server([identity]))
        pair.run()
        #expect((pair.client.metadata != nil) == (text == ForeignMaterial.pin))
        guard text != ForeignMaterial.pin else { return }
        #expect(pair.client.failure?.kind == .pinMismatch)
        #expect(pair.server.failure?.kind == .peerAlert)
    }

    @Test func aPinComesOnTopOfVerification() throws {
        var client = try Fixture.client()
        client.pins = [try #require(PublicKeyPin(Self.rfc))]
        let pair = try SecurePair(client, Fixture.server())
        pair.run()
        #expect(pair.client.failure?.kind == .pinMismatch)
        client.pins = []
        client.trust = .only([Fixture.source(try Fixture.all().otherAuthority)])
        let untrusted = try SecurePair(client, Fixture.server())
        untrusted.run()
        #expect(untrusted.client.metadata == nil)
    }

    @Test func theTwinComputesTheExampleOfTheStandard() {
        // FIPS 180-4, the example "abc".
        #expect(SHA256Twin.digest(Array("abc".utf8)).prefix(8) == [0xBA, 0x78, 0x16, 0xBF, 0x8F, 0x01, 0xCF, 0xEA])
    }

    /// The server sends its own certificate only; the root with the pinned key is found by verification.
    @Test func aPinOfAnAnchorMatchesThroughTheChain() throws {
        let authority = try TestCertificateAuthority("Pinned Root")
        let leaf = try authority.issue("server.test")
        var client = TLSConfiguration.client()
        client.trust = .only([Fixture.source(authority)])
        client.pins = [try self.pin(of: authority.certificate), try #require(PublicKeyPin(Self.rfc))]
        let pair = try SecurePair(client, Fixture.server([leaf]))
        pair.run()
        #expect(pair.client.metadata != nil, "\(String(describing: pair.client.failure))")
    }

    @Test func aMismatchIsPartOfTheVerdictThatTheCallerDecidesOver() throws {
        var client = try Fixture.client()
        client.pins = [try #require(PublicKeyPin(Self.rfc))]
        client.delegatesVerification = true
        let pair = try SecurePair(client, Fixture.server())
        pair.run()
        #expect(pair.client.request?.result.code == 50)
    }

    private func pin(of certificate: TestCertificate) throws -> PublicKeyPin {
        let key = try #require(P256PublicKey(inCertificate: certificate.der))
        return try #require(PublicKeyPin(digest: SHA256Twin.digest(key.subjectPublicKeyInfo)))
    }
}
