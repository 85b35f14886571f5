import HTTPTransport
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

    static func server(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> TLSContext {
        var configuration = TLSConfiguration.server([try self.identity(self.made.get().server)])
        configuration.trust = .only([try self.root()])
        change(&configuration)
        return try TLSContext(configuration)
    }

    /// Trusts the test's root by default.
    static func client(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> TLSContext {
        var configuration = TLSConfiguration.client()
        configuration.trust = .only([try self.root()])
        change(&configuration)
        return try TLSContext(configuration)
    }

    static func clientIdentity() throws -> TLSIdentity { try self.identity(self.made.get().client) }

    private static func identity(_ certificate: TestCertificate) throws -> TLSIdentity {
        try TLSIdentity(certificates: Array(certificate.chainPEM.utf8), key: Array(try certificate.keyPEM().utf8))
    }

    static func root() throws -> CertificateSource { .pem(Array(try self.made.get().authority.pem.utf8)) }

    static func otherRoot() throws -> CertificateSource {
        .pem(Array(try TestCertificateAuthority("Other Root").pem.utf8))
    }
}

extension RawServer {
    func secureRequest(_ context: TLSContext, method: String = "GET") -> ExchangeRequest {
        var request = self.request(method)
        request.origin.scheme = .https
        var secure = SecureSetup(context: context)
        secure.serverName = "server.test"
        request.secure = secure
        return request
    }
}
