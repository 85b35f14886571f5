/// A cipher suite of TLS 1.3 whose records are protected here once OpenSSL has done the handshake (RFC 8446 §B.4).
/// Connections with another one stay with OpenSSL.
package enum RecordSuite: UInt16, Sendable, CaseIterable {
    case aes128GCM = 0x1301
    case aes256GCM = 0x1302
    case chaCha20Poly1305 = 0x1303

    /// Length of the AEAD's key in bytes.
    var keyLength: Int {
        switch self {
        case .aes128GCM: 16
        case .aes256GCM, .chaCha20Poly1305: 32
        }
    }

    /// Length of traffic secrets in bytes, which is that of the suite's hash.
    var secretLength: Int {
        switch self {
        case .aes128GCM, .chaCha20Poly1305: 32
        case .aes256GCM: 48
        }
    }

    /// The IANA name.
    var name: String {
        switch self {
        case .aes128GCM: "TLS_AES_128_GCM_SHA256"
        case .aes256GCM: "TLS_AES_256_GCM_SHA384"
        case .chaCha20Poly1305: "TLS_CHACHA20_POLY1305_SHA256"
        }
    }
}
