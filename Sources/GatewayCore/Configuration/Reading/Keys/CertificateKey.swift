/// Keys of an entry of `certificates`.
package enum CertificateKey: String, CaseIterable, Sendable {
    case certificate
    case key
    case password
    case passwordFile = "password-file"
    case serverNames = "server-names"
}
