import Foundation
import TLSEngine
import TestSupport
import Testing

@Suite("Formats of certificates and keys")
struct MaterialTests {
    private static let keys: [(form: String, bytes: [UInt8], password: String?)] = [
        ("SEC 1", Array(ForeignMaterial.key.utf8), nil),
        ("SEC 1 encrypted", Array(ForeignMaterial.keyEncryptedByPEM.utf8), ForeignMaterial.password),
        ("PKCS#8 encrypted", Array(ForeignMaterial.keyEncryptedByPKCS8.utf8), ForeignMaterial.password),
        ("PKCS#8 DER", Array(Data(base64Encoded: ForeignMaterial.keyDER) ?? Data()), nil),
        ("certificate and key in one", Array((ForeignMaterial.certificate + "\n" + ForeignMaterial.key).utf8), nil),
    ]

    @Test(arguments: keys.indices)
    func keyIsReadInEveryForm(_ index: Int) throws {
        let (form, bytes, password) = Self.keys[index]
        let identity = try TLSIdentity(
            certificates: Array(ForeignMaterial.certificate.utf8), key: bytes, password: password)
        #expect(identity.serverNames == ["fixture.test"], "\(form)")
    }

    @Test(arguments: [ForeignMaterial.keyEncryptedByPEM, ForeignMaterial.keyEncryptedByPKCS8], [nil, "wrong", ""])
    func missingOrWrongPasswordIsReported(_ key: String, _ password: String?) {
        let error = #expect(throws: TLSFailure.self) {
            try TLSIdentity(
                certificates: Array(ForeignMaterial.certificate.utf8), key: Array(key.utf8), password: password)
        }
        #expect(error?.kind == .wrongPassword)
        #expect(
            error?.reasons == [
                password == nil
                    ? "the key is encrypted, and there is no password for it" : "the key's password is wrong"
            ])
    }

    @Test func pkcs12IsRead() throws {
        let bytes = Array(try #require(Data(base64Encoded: ForeignMaterial.pkcs12)))
        #expect(try TLSIdentity(pkcs12: bytes, password: ForeignMaterial.password).serverNames == ["fixture.test"])
        let error = #expect(throws: TLSFailure.self) { try TLSIdentity(pkcs12: bytes, password: "wrong") }
        #expect(error?.kind == .wrongPassword)
        let missing = #expect(throws: TLSFailure.self) { try TLSIdentity(pkcs12: bytes) }
        #expect(missing?.kind == .wrongPassword)
    }

    @Test(arguments: [nil, ""])
    func pkcs12WithoutAPasswordIsRead(_ password: String?) throws {
        let bytes = Array(try #require(Data(base64Encoded: ForeignMaterial.pkcs12WithoutPassword)))
        #expect(try TLSIdentity(pkcs12: bytes, password: password).serverNames == ["fixture.test"])
    }

    @Test func chainOfAPKCS12IsShown() throws {
        let bytes = try Fixture.all().server.pkcs12(password: "p")
        let server = TLSConfiguration.server([try TLSIdentity(pkcs12: bytes, password: "p")])
        let pair = try SecurePair(Fixture.client(), server)
        pair.run()
        #expect(pair.client.metadata?.peerChain.count == 2)
    }

    @Test func mismatchedKeyIsReportedWithItsFile() throws {
        let other = try TestCertificateKey().pem()
        let error = #expect(throws: TLSFailure.self) {
            try TLSIdentity(certificates: Array(ForeignMaterial.certificate.utf8), key: Array(other.utf8))
        }
        #expect(error?.kind == .keyMismatch)
        #expect(error?.file == nil)
        try self.withDirectory { directory in
            let certificate = directory + "/cert.pem"
            let key = directory + "/key.pem"
            try Data(ForeignMaterial.certificate.utf8).write(to: URL(filePath: certificate))
            try Data(other.utf8).write(to: URL(filePath: key))
            let error = #expect(throws: TLSFailure.self) { try TLSIdentity(certificateFile: certificate, keyFile: key) }
            #expect(error?.kind == .keyMismatch)
            #expect(error?.file == key)
            #expect(error?.description.hasPrefix("\(key): the private key does not match the certificate") == true)
            try Data(ForeignMaterial.key.utf8).write(to: URL(filePath: key))
            #expect(try TLSIdentity(certificateFile: certificate, keyFile: key).serverNames == ["fixture.test"])
        }
    }

    @Test func missingFileIsNamed() throws {
        let error = #expect(throws: TLSFailure.self) {
            try TLSIdentity(certificateFile: "/nowhere/cert.pem", keyFile: "/nowhere/key.pem")
        }
        #expect(error?.kind == .unreadableCredentials)
        #expect(error?.file == "/nowhere/cert.pem")
        #expect(error?.description == "/nowhere/cert.pem: cannot be opened: No such file or directory")
        let folder = #expect(throws: TLSFailure.self) { try TLSIdentity(certificateFile: "/tmp", keyFile: "/tmp") }
        #expect(folder?.description == "/tmp: contains no certificate: Is a directory")
        var client = TLSConfiguration.client()
        client.trust = .only([.file("/nowhere/ca.pem")])
        let trust = #expect(throws: TLSFailure.self) { try TLSContext(client) }
        #expect(trust?.file == "/nowhere/ca.pem")
    }

    @Test(arguments: [
        "", "hello", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN CERTIFICATE-----\n",
        ForeignMaterial.key,
    ])
    func missingCertificateIsReported(_ text: String) {
        let error = #expect(throws: TLSFailure.self) {
            try TLSIdentity(certificates: Array(text.utf8), key: Array(ForeignMaterial.key.utf8))
        }
        #expect(error?.kind == .unreadableCredentials)
        #expect(error?.reasons.isEmpty == false)
    }

    @Test(arguments: [
        "", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", ForeignMaterial.certificate,
    ])
    func missingKeyIsReported(_ text: String) {
        let error = #expect(throws: TLSFailure.self) {
            try TLSIdentity(certificates: Array(ForeignMaterial.certificate.utf8), key: Array(text.utf8))
        }
        #expect(error?.kind == .unreadableCredentials)
    }

    @Test func validityIsThatOfTheCertificate() throws {
        var profile = TestCertificateProfile("server.test", names: ["server.test"])
        // OpenSSL's two forms of a time: UTCTime, and from 2050 on GeneralizedTime.
        for (from, until) in [(-7200, -3600), (-86_400, 90 * 86_400), (3600, 100 * 365 * 86_400)] {
            (profile.validFrom, profile.validUntil) = (from, until)
            let before = Int(Date().timeIntervalSince1970)
            let validity = try #require(try Fixture.identity(TestCertificate(profile)).validity)
            let after = Int(Date().timeIntervalSince1970) + 1
            #expect((before + from...after + from).contains(Int(validity.notBefore)))
            #expect((before + until...after + until).contains(Int(validity.notAfter)))
        }
    }

    private func withDirectory(_ body: (String) throws -> Void) throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try body(directory)
    }
}
