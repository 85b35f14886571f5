/// Where certificates or revocation lists come from. Read when a context is made or reloaded, never later.
public enum CertificateSource: Sendable, Hashable {
    /// PEM text with any number of blocks; blocks of other kinds are skipped.
    case pem([UInt8])
    /// One DER-encoded item.
    case der([UInt8])
    /// A file with either of the two.
    case file(String)
}
