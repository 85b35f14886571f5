/// Which roots a peer's chain may end in.
public enum TrustAnchors: Sendable, Hashable {
    /// The system's roots: SSL_CERT_FILE and SSL_CERT_DIR if set, else OpenSSL's own place, else the first of the usual
    /// places that exists.
    case system
    /// The system's roots and these as well.
    case systemAnd([CertificateSource])
    /// These and no others. Each may also be an intermediate or a peer's own certificate.
    case only([CertificateSource])

    var extra: [CertificateSource] {
        switch self {
        case .system: []
        case .systemAnd(let sources), .only(let sources): sources
        }
    }

    var includesSystem: Bool {
        switch self {
        case .system, .systemAnd: true
        case .only: false
        }
    }
}
