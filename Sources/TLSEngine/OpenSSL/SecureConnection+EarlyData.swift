import COpenSSL

/// Early data of TLS 1.3: plaintext of a client that is sent with its first message, on a resumed session (RFC 8446 §2.3).
///
/// Its keys do not depend on anything new of the server, so that it can be replayed: it must not change anything there.
public struct EarlyDataOffer: Sendable, Hashable {
    /// Most bytes that the server takes.
    public let limit: Int
    /// As the handshake will complete if the server takes the early data.
    public let metadata: TLSMetadata
}

/// Outcome of early data.
public enum EarlyDataOutcome: Sendable, Hashable {
    /// None was sent.
    case none
    /// A client's was taken; a server has received so many bytes.
    case accepted(count: Int)
    /// The server did not take it: it has to be sent again.
    case rejected
}

extension SecureConnection {
    /// Client: what may be passed to `start(earlyData:)`; `nil` without a session that permits it.
    public var earlyDataOffer: EarlyDataOffer? {
        guard case .handshaking = self.phase, let session = unsafe SSL_get_session(self.ssl),
            unsafe sluice_is_fresh(session) == 1, let cipher = unsafe SSL_SESSION_get0_cipher(session)
        else { return nil }
        let limit = unsafe Int(SSL_SESSION_get_max_early_data(session))
        let name = unsafe Self.protocolName(of: session)
        // A server takes early data for the same protocol only.
        guard limit > 0, name.map(self.snapshot.configuration.applicationProtocols.contains) ?? true else { return nil }
        let leaf = unsafe SSL_SESSION_get0_peer(session).map { unsafe CertificateFields.derBytes(of: $0) }
        return EarlyDataOffer(
            limit: limit,
            metadata: TLSMetadata(
                version: .tls13,
                cipherName: unsafe SSL_CIPHER_standard_name(cipher).map { unsafe String(cString: $0) } ?? "unknown",
                cipherIdentifier: unsafe SSL_CIPHER_get_protocol_id(cipher), applicationProtocol: name,
                serverName: self.requestedName, peerChain: leaf.map { [$0] } ?? [], resumed: true))
    }

    private static func protocolName(of session: OpaquePointer) -> String? {
        var start: UnsafePointer<UInt8>?
        var count = 0
        unsafe SSL_SESSION_get0_alpn_selected(session, &start, &count)
        guard let start = unsafe start, count > 0 else { return nil }
        return unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
    }

    /// Client: as `start`, with plaintext to be sent at once. `TLSMetadata.earlyData` says whether the server took it; if
    /// not, the caller sends it again. No effect beyond that of `start` if there is no `earlyDataOffer`, or more than its
    /// limit.
    public func start(earlyData: RawSpan) {
        if let offer = self.earlyDataOffer, earlyData.byteCount > 0, earlyData.byteCount <= offer.limit {
            var written = 0
            ErrorQueue.clear()
            unsafe earlyData.withUnsafeBytes { bytes in
                _ = unsafe SSL_write_early_data(self.ssl, bytes.baseAddress, bytes.count, &written)
            }
            ErrorQueue.clear()
            self.earlyDataCount = earlyData.byteCount
        }
        self.start()
    }

    /// Server: receives a client's early data, which is delivered behind the handshake.
    /// - Returns: whether the handshake can continue.
    func receiveEarlyData() -> Bool {
        guard self.awaitsEarlyData else { return true }
        var bytes = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            var count = 0
            ErrorQueue.clear()
            let result = unsafe SSL_read_early_data(self.ssl, &bytes, bytes.count, &count)
            switch result {
            case SSL_READ_EARLY_DATA_SUCCESS:
                self.earlyPlaintext += bytes[..<count]
                self.earlyDataCount += count
            case SSL_READ_EARLY_DATA_FINISH:
                self.awaitsEarlyData = false
                return true
            default:
                // Incomplete, or failed: the handshake itself reports why.
                let isIncomplete = unsafe SSL_get_error(self.ssl, 0) == SSL_ERROR_WANT_READ
                if !isIncomplete { self.awaitsEarlyData = false }
                return !isIncomplete
            }
        }
    }

    /// Takes what fits of the early data received.
    func takeEarlyPlaintext(into plaintext: UnsafeMutableRawBufferPointer) -> SecureEvent? {
        let count = min(plaintext.count, self.earlyPlaintext.count)
        guard count > 0 else { return nil }
        unsafe plaintext.copyBytes(from: self.earlyPlaintext[..<count])
        self.earlyPlaintext.removeFirst(count)
        return .plaintext(count: count)
    }

    /// Of a completed handshake.
    var earlyDataOutcome: EarlyDataOutcome {
        guard self.earlyDataCount > 0 else { return .none }
        let isAccepted = unsafe SSL_get_early_data_status(self.ssl) == SSL_EARLY_DATA_ACCEPTED
        return isAccepted ? .accepted(count: self.earlyDataCount) : .rejected
    }
}
