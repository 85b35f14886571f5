public enum SecureEvent: Sendable, Equatable {
    /// The handshake is complete and the peer accepted. Occurs once.
    indirect case handshakeCompleted(TLSMetadata)
    /// `count` bytes, at least 1, were written to the front of the caller's buffer.
    case plaintext(count: Int)
    /// The handshake is paused until `resolveVerification`. Occurs at most once, and only with
    /// `TLSConfiguration.delegatesVerification`.
    indirect case verificationRequested(VerificationRequest)
    /// The handshake is paused until `provideClientCertificate`. `issuers` are the names that the server accepts, each
    /// a DER-encoded X.501 Name; empty means any.
    case clientCertificateRequested(issuers: [[UInt8]])
    /// The peer sent close_notify: all its data has arrived. Occurs at most once; our output stays open.
    case inputClosed
    /// The connection failed; the last event. The output buffer may hold an alert that should still be sent.
    indirect case failed(TLSFailure)
}

/// The parameters that a handshake negotiated.
public struct TLSMetadata: Sendable, Hashable {
    public let version: TLSVersion
    /// IANA name of the cipher suite, such as `TLS_AES_128_GCM_SHA256`.
    public let cipherName: String
    /// IANA number of the cipher suite, such as 0x1301.
    public let cipherIdentifier: UInt16
    /// The protocol selected by ALPN (RFC 7301); `nil` without ALPN.
    public let applicationProtocol: String?
    /// The SNI of the ClientHello (RFC 6066 §3); `nil` without one, as for an IP address.
    public let serverName: String?
    /// The peer's certificates as DER, the leaf first; empty if it presented none. On a server, a resumed session has
    /// the leaf certificate only.
    public let peerChain: [[UInt8]]
    /// Whether the session was resumed; the peer was verified when the session was established, not now.
    public let resumed: Bool
    /// Outcome of early data.
    public let earlyData: EarlyDataOutcome

    public init(
        version: TLSVersion, cipherName: String, cipherIdentifier: UInt16, applicationProtocol: String?,
        serverName: String?, peerChain: [[UInt8]], resumed: Bool, earlyData: EarlyDataOutcome = .none
    ) {
        self.version = version
        self.cipherName = cipherName
        self.cipherIdentifier = cipherIdentifier
        self.applicationProtocol = applicationProtocol
        self.serverName = serverName
        self.peerChain = peerChain
        self.resumed = resumed
        self.earlyData = earlyData
    }
}

/// Whether the end of the transport's input was announced by close_notify.
public enum TransportClosure: Sendable, Hashable {
    /// close_notify preceded the end: all data of the peer has arrived.
    case clean
    /// No close_notify: data may be missing, by accident or by an attack (RFC 8446 §6.1).
    case truncated
}
