/// Why something of TLS failed: what kind of failure, what OpenSSL said, and which alert went over the wire.
public struct TLSFailure: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Kind: Sendable, Hashable {
        /// The two sides could not agree, or the peer broke a rule of the handshake.
        case handshake
        /// What the peer sent first is no TLS record: it speaks another protocol.
        case notTLS
        /// The peer's certificate did not stand up to verification.
        case verification(VerificationResult)
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
        case unreadableCredentials
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
        case .verification, .pinMismatch, .rejected, .unreadableCredentials, .wrongPassword, .keyMismatch: true
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

/// An alert of the TLS record protocol, and which side said it (RFC 8446 §6).
public struct TLSAlert: Sendable, Hashable, CustomStringConvertible {
    public enum Origin: Sendable, Hashable {
        case ours
        case peer
    }

    /// The AlertDescription, 0 to 255; unassigned values are possible when the peer sends them.
    public let code: UInt8
    public let origin: Origin

    public init(code: UInt8, origin: Origin) {
        self.code = code
        self.origin = origin
    }

    /// Whether its sender asks for a certificate, or objects to the one that it was shown (RFC 8446 §6.2).
    public var concernsCertificate: Bool {
        switch self.code {
        case 42...46, 48, 116: true
        default: false
        }
    }

    /// The RFC's word for the code, as `bad_certificate`; `alert 99` for one without a word.
    public var name: String {
        Self.names[self.code] ?? "alert \(self.code)"
    }

    public var description: String {
        switch self.origin {
        case .ours: "we sent \(self.name)"
        case .peer: "the peer sent \(self.name)"
        }
    }

    /// RFC 8446 §6, RFC 5246 §7.2.
    private static let names: [UInt8: String] = [
        0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 21: "decryption_failed",
        22: "record_overflow", 30: "decompression_failure", 40: "handshake_failure", 41: "no_certificate",
        42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked", 45: "certificate_expired",
        46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca", 49: "access_denied",
        50: "decode_error", 51: "decrypt_error", 70: "protocol_version", 71: "insufficient_security",
        80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled", 100: "no_renegotiation",
        109: "missing_extension", 110: "unsupported_extension", 112: "unrecognized_name",
        113: "bad_certificate_status_response", 115: "unknown_psk_identity", 116: "certificate_required",
        120: "no_application_protocol",
    ]
}
