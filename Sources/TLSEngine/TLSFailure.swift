/// A TLS failure: its kind, OpenSSL's error texts, and the alert that was sent or received.
public struct TLSFailure: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Kind: Sendable, Hashable {
        /// No common parameters, or the peer violated the handshake protocol.
        case handshake
        /// The peer's first bytes are not a TLS record: it speaks another protocol.
        case notTLS
        case verification(VerificationResult)
        /// The chain is valid but contains none of the pinned keys.
        case pinMismatch
        /// The caller resolved a verification request with `.reject`.
        case rejected
        case peerAlert
        /// After the handshake: a record was corrupt or unexpected.
        case record
        /// The peer closed the transport or sent close_notify before the handshake completed.
        case closedDuringHandshake
        /// More bytes arrived during a pending decision than are buffered.
        case excessiveInput
        /// A certificate, key, revocation list or PKCS#12 file cannot be read.
        case unreadableCredentials
        /// A key or PKCS#12 file is encrypted and the password is missing or wrong.
        case wrongPassword
        /// The private key does not belong to the certificate.
        case keyMismatch
        case configuration
        case outputClosed
        /// OpenSSL lacks memory or randomness.
        case engine
    }

    public let kind: Kind
    /// Texts for a log, the most specific last; never empty.
    public let reasons: [String]
    /// The alert that ended the connection, if one was sent or received.
    public let alert: TLSAlert?
    /// Path of the file that could not be used, if any.
    public let file: String?

    public init(_ kind: Kind, reasons: [String], alert: TLSAlert? = nil, file: String? = nil) {
        self.kind = kind
        self.reasons = reasons
        self.alert = alert
        self.file = file
    }

    /// Whether a certificate, name or key caused the failure: another attempt with the same peer would fail again.
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

/// A TLS alert and the side that sent it (RFC 8446 §6).
public struct TLSAlert: Sendable, Hashable, CustomStringConvertible {
    public enum Origin: Sendable, Hashable {
        case ours
        case peer
    }

    /// The AlertDescription, 0 to 255; the peer may send unassigned values.
    public let code: UInt8
    public let origin: Origin

    public init(code: UInt8, origin: Origin) {
        self.code = code
        self.origin = origin
    }

    /// Whether the sender requires a certificate or rejects the one presented (RFC 8446 §6.2).
    public var concernsCertificate: Bool {
        switch self.code {
        case 42...46, 48, 116: true
        default: false
        }
    }

    /// The RFC's name of the code, such as `bad_certificate`; `alert 99` for an unassigned one.
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
