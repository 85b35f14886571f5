import Foundation
import TLSEngine
import TestSupport
import URLLoading

/// TLS settings of a test's servers, and the certificates for their clients; made once.
enum Certificates {
    private struct Material: Sendable {
        let authority: TestCertificateAuthority
        /// Of the servers of variants with TLS: sessions trust it, unlike the other.
        let currentAuthority: TestCertificateAuthority
        let current: TestCertificate
        let server: TestCertificate
        let client: TestCertificate
    }

    private static let made = Result { () throws -> Material in
        let authority = try TestCertificateAuthority("Test Root")
        let currentAuthority = try TestCertificateAuthority("Trusted Root")
        let profile = TestCertificateProfile("localhost", names: ["localhost"], addresses: ["127.0.0.1"])
        let names = ["localhost", "slow.test", "signed.test", "nowhere.test"]
        let current = TestCertificateProfile("localhost", names: names, addresses: ["127.0.0.1"])
        return Material(
            authority: authority, currentAuthority: currentAuthority, current: try currentAuthority.issue(current),
            server: try authority.issue(profile), client: try authority.issue("client.test"))
    }

    /// A server with a certificate of the private authority, for `localhost` and 127.0.0.1.
    static func server(_ change: (inout TLSConfiguration) -> Void = { _ in }) throws -> TLSContext {
        try self.server(self.made.get().server, change)
    }

    static func server(
        _ certificate: TestCertificate, _ change: (inout TLSConfiguration) -> Void = { _ in }
    ) throws -> TLSContext {
        var configuration = TLSConfiguration.server([try self.identity(certificate)])
        configuration.trust = .only([.pem(Array(try self.made.get().authority.pem.utf8))])
        if WebProtocol.current == .http2 { configuration.applicationProtocols = ["h2", "http/1.1"] }
        change(&configuration)
        return try TLSContext(configuration)
    }

    /// The TLS of servers of the current variant; `nil` for none.
    static func currentServer() throws -> TLSContext? {
        ConnectionVariant.current.isSecure ? try self.server(self.made.get().current) : nil
    }

    static func currentAuthority() throws -> Data { Data(try self.made.get().currentAuthority.pem.utf8) }
    static func currentDER() throws -> Data { Data(try self.made.get().current.der) }

    /// A server that requests a client certificate, and accepts only those of the authority.
    static func serverAskingForCertificate() throws -> TLSContext {
        try self.server { $0.peerVerification = .required }
    }

    static func authority() throws -> TestCertificateAuthority { try self.made.get().authority }
    static func serverDER() throws -> Data { Data(try self.made.get().server.der) }

    static func clientIdentity() throws -> ClientIdentity {
        let client = try self.made.get().client
        return try ClientIdentity(certificates: Data(client.chainPEM.utf8), key: Data(try client.keyPEM().utf8))
    }

    private static func identity(_ certificate: TestCertificate) throws -> TLSIdentity {
        try TLSIdentity(certificates: Array(certificate.chainPEM.utf8), key: Array(try certificate.keyPEM().utf8))
    }
}
