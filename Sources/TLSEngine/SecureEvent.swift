/// What a secure connection has to tell its owner.
public enum SecureEvent: Sendable, Equatable {
    /// Both sides are keyed and the peer was accepted. Comes once.
    indirect case handshakeCompleted(TLSMetadata)
    /// `count` bytes, at least 1, were put at the front of the caller's buffer.
    case plaintext(count: Int)
    /// The handshake waits for `resolveVerification`. Comes at most once, and only if the configuration asks for it.
    indirect case verificationRequested(VerificationRequest)
    /// The handshake waits for `provideClientCertificate`. `issuers` are the names that the server accepts, each a
    /// DER-encoded X.501 Name; empty means any.
    case clientCertificateRequested(issuers: [[UInt8]])
    /// The peer said close_notify: it finished sending, and nothing is missing. Comes at most once; our output stays
    /// open.
    case inputClosed
    /// The connection is over; nothing follows. What is in the output buffer (an alert) is still worth sending.
    indirect case failed(TLSFailure)
}

/// What a handshake agreed on.
public struct TLSMetadata: Sendable, Hashable {
    public let version: TLSVersion
    /// IANA name of the cipher suite, as `TLS_AES_128_GCM_SHA256`.
    public let cipherName: String
    /// IANA number of the cipher suite, as 0x1301.
    public let cipherIdentifier: UInt16
    /// The protocol that ALPN agreed on (RFC 7301); `nil` if there was no ALPN.
    public let applicationProtocol: String?
    /// The name the client asked for (RFC 6066 §3); `nil` if it named none or an IP address.
    public let serverName: String?
    /// The peer's certificates as DER, its own first; empty if it gave none. A resumed session remembers only the
    /// peer's own certificate on a server.
    public let peerChain: [[UInt8]]
    /// Whether the session was resumed; the peer was then verified when the session began, not now.
    public let resumed: Bool

    public init(
        version: TLSVersion, cipherName: String, cipherIdentifier: UInt16, applicationProtocol: String?,
        serverName: String?, peerChain: [[UInt8]], resumed: Bool
    ) {
        self.version = version
        self.cipherName = cipherName
        self.cipherIdentifier = cipherIdentifier
        self.applicationProtocol = applicationProtocol
        self.serverName = serverName
        self.peerChain = peerChain
        self.resumed = resumed
    }
}

/// What the end of the transport's bytes means.
public enum TransportClosure: Sendable, Hashable {
    /// close_notify came first: everything the peer sent has arrived.
    case clean
    /// No close_notify: bytes may be missing, by accident or by an attacker (RFC 8446 §6.1).
    case truncated
}
