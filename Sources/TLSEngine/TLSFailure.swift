/// Why something of TLS failed: what kind of failure, what OpenSSL said, and which alert went over the wire.
public struct TLSFailure: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Kind: Sendable, Hashable {
        /// The two sides could not agree, or the peer broke a rule of the handshake.
        case handshake
        /// What the peer sent first is no TLS record: it speaks another protocol.
        case notTLS
        /// The peer's certificate did not stand up to verification.
        case verification(VerificationVerdict)
        /// The chain is valid but holds none of the pinned keys.
        case pinMismatch
        /// The caller answered a verification request with `.reject`.
        case rejected
        /// The peer ended it with an alert; `alert` tells which.
        case peerAlert
        /// After the handshake: a record was corrupt or came out of place.
        case record
        /// The peer vanished or said close_notify before the handshake was over.
        case closedDuringHandshake
        /// More bytes arrived while a decision was awaited than are kept aside.
        case excessiveInput
        /// A certificate, key, revocation list or PKCS#12 file cannot be read.
        case unreadableMaterial
        /// A key or PKCS#12 file is encrypted and the password is missing or wrong.
        case wrongPassword
        /// The private key does not belong to the certificate.
        case keyMismatch
        /// The configuration asks for something impossible.
        case configuration
        /// Called after `closeOutput` or after the connection failed.
        case outputClosed
        /// OpenSSL could not do its work: memory, randomness.
        case engine
    }

    public let kind: Kind
    /// Reasons in words, the most specific last; never empty.
    public let reasons: [String]
    /// The alert that ended the connection, if one was sent or received.
    public let alert: TLSAlert?
    /// The file at fault, if the failure is about material loaded from a file.
    public let file: String?

    public init(_ kind: Kind, reasons: [String], alert: TLSAlert? = nil, file: String? = nil) {
        self.kind = kind
        self.reasons = reasons
        self.alert = alert
        self.file = file
    }

    /// Whether certificates, names or keys do not fit: another attempt with the same peer fails for the same reason.
    public var concernsCertificates: Bool {
        switch self.kind {
        case .verification, .pinMismatch, .rejected, .unreadableMaterial, .wrongPassword, .keyMismatch: true
        case .peerAlert: self.alert?.concernsCertificate ?? false
        case .handshake, .notTLS, .record, .closedDuringHandshake, .excessiveInput, .configuration, .outputClosed,
            .engine:
            false
        }
    }

    public var description: String {
        var text = self.reasons.joined(separator: ": ")
        if let file = self.file { text = "\(file): \(text)" }
        if let alert = self.alert { text += " (\(alert))" }
        return text
    }
}
