import COpenSSL

/// Names one TLS connection, or its server, to an authentication within the connection (RFC 5056).
public enum ChannelBinding {
    /// The binding `tls-server-end-point`: its name, a colon and the digest of the server's certificate, by the hash of the
    /// certificate's signature, but SHA-256 instead of MD5 and SHA-1 (RFC 5929 §4).
    /// - Parameter certificate: in DER.
    /// - Returns: `nil` for an invalid certificate, and for one whose signature has no hash, or an unknown one, for which
    ///   the binding is not defined.
    public static func serverEndPoint(certificate: [UInt8]) -> [UInt8]? {
        guard let parsed = unsafe CertificateFields.parse(certificate) else {
            ERR_clear_error()
            return nil
        }
        defer {
            unsafe X509_free(parsed)
            ERR_clear_error()
        }
        var hash: Int32 = 0
        guard unsafe X509_get_signature_info(parsed, &hash, nil, nil, nil) == 1 else { return nil }
        if hash == NID_md5 || hash == NID_sha1 { hash = NID_sha256 }
        guard let algorithm = unsafe EVP_get_digestbyname(OBJ_nid2sn(hash)) else { return nil }
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard unsafe X509_digest(parsed, algorithm, &digest, &count) == 1 else { return nil }
        return Array("tls-server-end-point:".utf8) + digest.prefix(Int(count))
    }
}
