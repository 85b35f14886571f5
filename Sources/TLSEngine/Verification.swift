/// The facts on which a caller decides whether to trust a peer.
public struct VerificationRequest: Sendable, Hashable {
    /// The certificates as the peer sent them, each as DER, the leaf first; never empty.
    public let peerChain: [[UInt8]]
    /// The result of verification with the configured trust, names, revocation lists and pins. A pin mismatch is
    /// X509_V_ERR_APPLICATION_VERIFICATION.
    public let result: VerificationResult
    /// The reference name (client) or the SNI of the ClientHello (server).
    public let serverName: String?

    public init(peerChain: [[UInt8]], result: VerificationResult, serverName: String?) {
        self.peerChain = peerChain
        self.result = result
        self.serverName = serverName
    }
}

/// The caller's decision on a `VerificationRequest`. It overrides OpenSSL's result in both directions.
public enum VerificationDecision: Sendable, Hashable {
    case accept
    case reject
}

/// OpenSSL's result of verifying a certificate chain.
public struct VerificationResult: Sendable, Hashable, CustomStringConvertible {
    /// The X509_V_ERR code; 0 if the chain is valid.
    public let code: Int32
    /// OpenSSL's text for `code`, such as "certificate has expired".
    public let text: String
    /// The certificate of the chain that failed; 0 is the leaf.
    public let depth: Int

    public init(code: Int32, text: String, depth: Int) {
        self.code = code
        self.text = text
        self.depth = depth
    }

    /// Whether the certificate does not match the reference name or address (`X509_V_ERR_HOSTNAME_MISMATCH`,
    /// `X509_V_ERR_IP_ADDRESS_MISMATCH`).
    public var isNameMismatch: Bool { self.code == 62 || self.code == 64 }

    public var isValid: Bool { self.code == 0 }

    public var description: String {
        self.depth == 0 ? self.text : "\(self.text) (certificate \(self.depth) of the chain)"
    }
}

/// The names in a certificate, for authorizing its owner.
public struct CertificateNames: Sendable, Hashable {
    /// The subject in the form of RFC 2253, the most specific attribute first: `CN=ops,O=Example`.
    public let subject: String
    /// Subject alternative names that are DNS names, e-mail addresses or URIs, in the certificate's order.
    public let alternativeNames: [String]
    public let pin: PublicKeyPin

    public init(subject: String, alternativeNames: [String], pin: PublicKeyPin) {
        self.subject = subject
        self.alternativeNames = alternativeNames
        self.pin = pin
    }
}
