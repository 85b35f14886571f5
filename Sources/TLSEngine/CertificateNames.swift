/// Whom a certificate names, for deciding what its owner may do.
public struct CertificateNames: Sendable, Hashable {
    /// The subject in the form of RFC 2253, the most specific first: `CN=ops,O=Example`.
    public let subject: String
    /// Alternative names that are DNS names, e-mail addresses or URIs, in the certificate's order.
    public let alternativeNames: [String]
    public let pin: PublicKeyPin

    public init(subject: String, alternativeNames: [String], pin: PublicKeyPin) {
        self.subject = subject
        self.alternativeNames = alternativeNames
        self.pin = pin
    }
}
