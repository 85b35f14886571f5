/// Everything that a `TLSContext` is made from.
public struct TLSConfiguration: Sendable {
    public enum Role: Sendable, Hashable {
        case client
        case server
    }

    public var role: Role
    /// Default: TLS 1.2.
    public var minimumVersion: TLSVersion = .tls12
    /// Default: TLS 1.3.
    public var maximumVersion: TLSVersion = .tls13
    /// Protocols for ALPN, the most wanted first; each 1 to 255 bytes. Default: none. A server that has some refuses a client
    /// that offers only others (no_application_protocol, RFC 7301 §3.2).
    public var applicationProtocols: [String] = []

    /// Certificates with their keys. Server: at least one; the name in the ClientHello picks among them by the DNS names they hold,
    /// and the first is the default. Client: the first is given when the server asks.
    public var identities: [TLSIdentity] = []
    /// Server: a client that asks for a name of no identity is refused (unrecognized_name) instead of given the default one.
    public var refusesUnknownServerNames = false

    public var peerVerification: PeerVerification
    public var trust: TrustAnchors = .system
    /// Client: the certificate must be for the name or address of the connection. Default: true.
    public var checksServerName = true
    /// If any, one of these keys must occur in the chain, beside everything else that is verified (RFC 7469 §2.6).
    public var pins: Set<PublicKeyPin> = []
    public var revocation: RevocationChecking = .off
    /// The connection stops at `.verificationRequested` and the caller's answer decides. Default: false.
    public var asksForDecision = false
    /// Client: the connection stops at `.clientCertificateRequested` when the server asks for a certificate, instead of giving
    /// the first identity. Default: false.
    public var asksForClientCertificate = false

    public var resumption: ResumptionPolicy = .tickets
    /// How long a session may be resumed, in seconds, 1 to 604800 (RFC 8446 §4.6.1). Default: two hours.
    public var sessionLifetime = 7200
    /// Client: sessions kept in all; the least recently stored makes room. Default: 256.
    public var clientSessionLimit = 256

    /// Cipher suites of TLS 1.2 in OpenSSL's language. Default: OpenSSL's own choice.
    public var cipherList: String?
    /// Cipher suites of TLS 1.3, IANA names joined by colons. Default: all three of RFC 8446.
    public var cipherSuites: String?
    /// OpenSSL's security level, 0 to 5. Default: 2, at least 112 bits: no RSA key under 2048 bits, no SHA-1 signature.
    public var securityLevel = 2
    public var keyLog: KeyLog?

    /// A client that verifies the server by the system's roots and by name.
    public static func client() -> TLSConfiguration {
        TLSConfiguration(role: .client, peerVerification: .required)
    }

    /// A server that shows `identities` and asks clients for no certificate.
    public static func server(_ identities: [TLSIdentity]) -> TLSConfiguration {
        var configuration = TLSConfiguration(role: .server, peerVerification: .none)
        configuration.identities = identities
        return configuration
    }

    private init(role: Role, peerVerification: PeerVerification) {
        self.role = role
        self.peerVerification = peerVerification
    }
}
