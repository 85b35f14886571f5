import TLSEngine
import TestSupport

/// Certificates made once for all tests of this target.
enum Fixture {
    struct Set: Sendable {
        let authority: TestCertificateAuthority
        let otherAuthority: TestCertificateAuthority
        let server: TestCertificate
        let client: TestCertificate
    }

    private static let made = Result { () throws -> Set in
        let authority = try TestCertificateAuthority("Test Root")
        return Set(
            authority: authority, otherAuthority: try TestCertificateAuthority("Other Root"),
            server: try authority.intermediate().issue(
                TestCertificateProfile(
                    "server.test", names: ["server.test", "*.wild.test"], addresses: ["127.0.0.1", "::1"])),
            client: try authority.issue("client.test"))
    }

    static func all() throws -> Set { try self.made.get() }

    static func identity(_ certificate: TestCertificate) throws -> TLSIdentity {
        try TLSIdentity(
            certificates: Array(certificate.chainPEM.utf8), key: Array(try certificate.keyPEM().utf8))
    }

    static func server(_ version: TLSVersion = .tls13) throws -> TLSConfiguration {
        try self.server([self.all().server], version)
    }

    static func server(kind: ServerKind) throws -> TLSConfiguration {
        var configuration = try self.server(kind == .tls12 ? .tls12 : .tls13)
        configuration.recordLayer = kind == .compactTLS13 ? .compact : .openSSL
        return configuration
    }

    static func server(_ certificates: [TestCertificate], _ version: TLSVersion = .tls13) throws -> TLSConfiguration {
        var configuration = TLSConfiguration.server(try certificates.map(self.identity))
        configuration.minimumVersion = version
        configuration.maximumVersion = version
        return configuration
    }

    /// Trusts the test root only.
    static func client() throws -> TLSConfiguration {
        var configuration = TLSConfiguration.client()
        configuration.trust = .only([self.source(try self.all().authority)])
        return configuration
    }

    static func source(_ authority: TestCertificateAuthority) -> CertificateSource {
        .pem(Array(authority.pem.utf8))
    }
}

extension TLSVersion {
    static let both: [TLSVersion] = [.tls12, .tls13]
}

/// Every kind of record layer after a server's handshake.
enum ServerKind: CaseIterable, Sendable {
    case tls12
    case tls13
    case compactTLS13
}
