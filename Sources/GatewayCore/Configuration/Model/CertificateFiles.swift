/// A certificate chain and its private key, on disk.
package struct CertificateFiles: Sendable, Equatable {
    /// PEM with the leaf first and then its intermediates, or a PKCS#12 file (`.p12`, `.pfx`) that holds the key too.
    package var certificate: String
    /// PEM; `nil` when `certificate` holds the key.
    package var key: String?
    package var password: KeyPassword?
    /// Server names that choose this certificate, exact or `*.example.com`; empty goes by the names in the certificate.
    package var serverNames: [HostPattern] = []

    package init(certificate: String, key: String? = nil, password: KeyPassword? = nil) {
        self.certificate = certificate
        self.key = key
        self.password = password
    }
}
