/// Everything a caller needs to decide whether a peer is to be trusted.
public struct VerificationRequest: Sendable, Hashable {
    /// The certificates as the peer sent them, each as DER, its own first; never empty.
    public let peerChain: [[UInt8]]
    /// What verification by the configured trust, names, revocation lists and pins found. A pin that does not match is
    /// told as X509_V_ERR_APPLICATION_VERIFICATION.
    public let result: VerificationResult
    /// The name that we asked for (client) or were asked for (server).
    public let serverName: String?

    public init(peerChain: [[UInt8]], result: VerificationResult, serverName: String?) {
        self.peerChain = peerChain
        self.result = result
        self.serverName = serverName
    }
}

/// The caller's answer to a `VerificationRequest`. It overrides OpenSSL's own verdict in both directions.
public enum VerificationDecision: Sendable, Hashable {
    case accept
    case reject
}

/// What OpenSSL found when it verified the peer's certificate chain.
public struct VerificationResult: Sendable, Hashable, CustomStringConvertible {
    /// The X509_V_ERR code; 0 when nothing is wrong.
    public let code: Int32
    /// OpenSSL's words for `code`, as "certificate has expired".
    public let text: String
    /// Which certificate of the chain is at fault; 0 is the peer's own.
    public let depth: Int

    public init(code: Int32, text: String, depth: Int) {
        self.code = code
        self.text = text
        self.depth = depth
    }

    /// Whether the certificate is not for the name or address that was asked for (`X509_V_ERR_HOSTNAME_MISMATCH`,
    /// `X509_V_ERR_IP_ADDRESS_MISMATCH`).
    public var isNameMismatch: Bool { self.code == 62 || self.code == 64 }

    public var isValid: Bool { self.code == 0 }

    public var description: String {
        self.depth == 0 ? self.text : "\(self.text) (certificate \(self.depth) of the chain)"
    }
}

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
