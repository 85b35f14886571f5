/// What a handshake agreed on.
public struct TLSFacts: Sendable, Hashable {
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
