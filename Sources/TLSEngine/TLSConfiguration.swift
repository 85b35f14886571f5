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
    /// Protocols for ALPN, the most wanted first; each 1 to 255 bytes. Default: none. A server that has some refuses a
    /// client that offers only others (no_application_protocol, RFC 7301 §3.2).
    public var applicationProtocols: [String] = []

    /// Certificates with their keys. Server: at least one; the name in the ClientHello picks among them by the DNS
    /// names they hold, and the first is the default. Client: the first is given when the server asks.
    public var identities: [TLSIdentity] = []
    /// Server: a client that asks for a name of no identity is refused (unrecognized_name) instead of given the default
    /// one.
    public var refusesUnknownServerNames = false

    public var peerVerification: PeerVerification
    public var trust: TrustAnchors = .system
    /// Client: the certificate must be for the name or address of the connection. Default: true.
    public var checksServerName = true
    /// If any, one of these keys must occur in the chain, beside everything else that is verified (RFC 7469 §2.6).
    public var pins: Set<PublicKeyPin> = []
    public var revocation: RevocationChecking = .off
    /// The connection stops at `.verificationRequested` and the caller's answer decides. Default: false.
    ///
    /// A client's handshake is suspended meanwhile. A server's is held: it reads nothing behind the certificate,
    /// completes nothing, issues no ticket; under TLS 1.3 the client may think itself connected, as it may with any
    /// server that verifies. A rejection is told to the peer as bad_certificate; by a TLS 1.3 server as
    /// handshake_failure, or unexpected_message if the client's signature has not arrived. A resumed session is not
    /// asked about again.
    public var asksForDecision = false
    /// Client: the connection stops at `.clientCertificateRequested` when the server asks for a certificate, instead of
    /// giving the first identity. Default: false.
    public var asksForClientCertificate = false

    /// Server: who protects the records of TLS 1.3 behind the handshake. Default: OpenSSL.
    public var recordLayer = TLSRecordLayer.openSSL

    public var resumption: ResumptionPolicy = .tickets
    /// How long a session may be resumed, in seconds, 1 to 604800 (RFC 8446 §4.6.1). Default: two hours.
    public var sessionLifetime = 7200
    /// Client: sessions kept in all; the least recently stored makes room. Default: 256.
    public var clientSessionLimit = 256

    /// Cipher suites of TLS 1.2 in OpenSSL's language, the most wanted first. Default: those with forward secrecy and
    /// authenticated encryption, as RFC 9325 §4.2 recommends; a peer that knows only older ones needs `DEFAULT` here.
    public var cipherList = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
        "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
    ].joined(separator: ":")
    /// Cipher suites of TLS 1.3, IANA names joined by colons, the most wanted first. Default: all three that RFC 8446
    /// §9.1 names, with the one that everybody must have first.
    public var cipherSuites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
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
