/// Whether certificates are looked up in revocation lists (RFC 5280 §6.3).
///
/// A certificate whose issuer has no current list among the given ones fails verification: a list that is missing could
/// have named it.
public enum RevocationChecking: Sendable, Hashable {
    case off
    /// Only the peer's own certificate.
    case peer(lists: [CertificateSource])
    /// Every certificate of the chain but the root.
    case wholeChain(lists: [CertificateSource])

    var lists: [CertificateSource] {
        switch self {
        case .off: []
        case .peer(let lists), .wholeChain(let lists): lists
        }
    }
}
