import COpenSSL

/// What the handshake agreed on, read from OpenSSL.
extension SecureConnection {
    func facts() -> TLSFacts? {
        guard let version = TLSVersion(rawValue: UInt16(truncatingIfNeeded: unsafe SSL_version(self.ssl))),
            let cipher = unsafe SSL_get_current_cipher(self.ssl)
        else { return nil }
        let identifier = unsafe SSL_CIPHER_get_protocol_id(cipher)
        // A literal costs each connection nothing.
        let name =
            RecordSuite(rawValue: identifier)?.name
            ?? (unsafe SSL_CIPHER_standard_name(cipher).map { unsafe String(cString: $0) })
        return TLSFacts(
            version: version, cipherName: name ?? "unknown", cipherIdentifier: identifier,
            applicationProtocol: self.applicationProtocol(), serverName: self.requestedName,
            peerChain: self.peerChain(), resumed: unsafe SSL_session_reused(self.ssl) == 1)
    }

    /// The name in the ClientHello, ours or the peer's.
    var requestedName: String? {
        guard let name = unsafe SSL_get_servername(self.ssl, TLSEXT_NAMETYPE_host_name) else { return nil }
        return unsafe String(cString: name)
    }

    private func applicationProtocol() -> String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(self.ssl, &start, &count)
        guard let start = unsafe start, count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    private func peerChain() -> [[UInt8]] {
        guard let own = unsafe SSL_get0_peer_certificate(self.ssl) else { return [] }
        let chain = unsafe Self.derChain(SSL_get_peer_cert_chain(self.ssl))
        let first = unsafe CertificateFields.derBytes(of: own)
        // A server's view of the chain leaves the peer's own certificate out, a client's does not.
        return chain.first == first ? chain : [first] + chain
    }

    static func derChain(_ stack: OpaquePointer?) -> [[UInt8]] {
        (0..<(unsafe sluice_x509_count(stack))).map { index in
            unsafe CertificateFields.derBytes(of: sluice_x509_at(stack, index))
        }
    }
}
