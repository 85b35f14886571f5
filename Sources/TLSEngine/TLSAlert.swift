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
