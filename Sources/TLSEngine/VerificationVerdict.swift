/// What OpenSSL found when it verified the peer's certificate chain.
public struct VerificationVerdict: Sendable, Hashable, CustomStringConvertible {
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
