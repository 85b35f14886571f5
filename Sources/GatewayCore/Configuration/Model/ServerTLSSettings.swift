/// TLS of a listener. Files are read at start and again at each reload.
package struct ServerTLSSettings: Sendable, Equatable {
    /// Whether clients are asked for a certificate.
    package enum ClientAuthentication: String, Sendable, Equatable, CaseIterable {
        case none
        /// Asked for; a client without one is let in, one with a bad one is not.
        case request
        /// A client without a certificate that `clientCA` vouches for fails the handshake.
        case require
    }

    /// Which code protects the records of TLS 1.3 behind the handshake.
    package enum Records: String, Sendable, Equatable, CaseIterable {
        case openssl
        /// Ours over OpenSSL's ciphers: a third of the memory, out of reach of OpenSSL's updates.
        case compact
    }

    /// At least one. The client's server name picks among them; the first is used when none fits.
    package var certificates: [CertificateFiles]
    /// PEM file of the authorities that client certificates are checked against. Present unless `clientAuthentication`
    /// is
    /// `none`.
    package var clientCA: String?
    package var clientAuthentication = ClientAuthentication.none
    /// PEM or DER files with the current revocation lists of the authorities that client certificates come from; empty
    /// looks in none.
    package var clientRevocationLists: [String] = []
    /// Application protocols in our order of preference; empty takes part in no choice. Each 1 to 255 bytes.
    package var alpn: [String] = []
    package var minimumVersion = TLSVersionFloor.tls12
    package var records = Records.openssl
    /// File that session secrets are appended to (NSS key log), for looking at captured traffic; `nil` writes none.
    package var keyLog: String?

    package init(certificates: [CertificateFiles]) {
        self.certificates = certificates
    }
}
