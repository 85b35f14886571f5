import SessionTasks
import TLSEngine
import TestSupport

/// TLS settings of both roles, with certificates made once.
enum SecureFixture {
    private struct Material: Sendable {
        let authority: TestCertificateAuthority
        let server: TestCertificate
        let client: TestCertificate
    }

    private static let made = Result { () throws -> Material in
        let authority = try TestCertificateAuthority("Test Root")
        return Material(
            authority: authority, server: try authority.issue("server.test"), client: try authority.issue("client.test")
        )
    }

    static func identity(_ certificate: TestCertificate) throws -> TLSIdentity {
        try TLSIdentity(certificates: Array(certificate.chainPEM.utf8), key: Array(try certificate.keyPEM().utf8))
    }

    static func server(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> SecureSettings {
        var configuration = TLSConfiguration.server([try self.identity(self.made.get().server)])
        configuration.trust = .only([try self.root()])
        change(&configuration)
        return SecureSettings(context: try TLSContext(configuration))
    }

    /// Trusts the test's root by default.
    static func client(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> SecureSettings {
        var configuration = TLSConfiguration.client()
        configuration.trust = .only([try self.root()])
        change(&configuration)
        return SecureSettings(context: try TLSContext(configuration), serverName: "server.test")
    }

    static func clientIdentity() throws -> TLSIdentity {
        try self.identity(self.made.get().client)
    }

    static func root() throws -> CertificateSource {
        .pem(Array(try self.made.get().authority.pem.utf8))
    }

    static func otherRoot() throws -> CertificateSource {
        .pem(Array(try TestCertificateAuthority("Other Root").pem.utf8))
    }
}
