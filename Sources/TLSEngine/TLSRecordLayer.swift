/// Which code protects the records of a server's TLS 1.3 connection behind its handshake. The handshake, TLS 1.2 and the
/// client's role always belong to OpenSSL.
public enum TLSRecordLayer: Sendable, Hashable {
    /// OpenSSL's own connection, its buffers released while they are empty: 16 to 17 KiB for each idle connection.
    case openSSL
    /// The record protocol of this module over OpenSSL's ciphers: 5 to 6 KiB for each idle connection. An update of
    /// OpenSSL reaches its ciphers only. Cipher suites other than the three of RFC 8446 §9.1 stay with OpenSSL.
    case compact
}
