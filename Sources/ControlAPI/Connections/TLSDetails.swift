/// What a TLS handshake agreed on.
package struct TLSDetails: Codable, Sendable, Equatable {
    /// As `TLS 1.3`.
    package var version: String
    /// The IANA name.
    package var cipher: String
    /// By ALPN.
    package var applicationProtocol: String?
    /// The name that the client asked for.
    package var serverName: String?
    package var resumed: Bool
    /// Of the peer's certificates in DER, its own first.
    package var peerCertificateSizesBytes: [Int]

    package init(
        version: String, cipher: String, applicationProtocol: String? = nil, serverName: String? = nil,
        resumed: Bool, peerCertificateSizesBytes: [Int]
    ) {
        self.version = version
        self.cipher = cipher
        self.applicationProtocol = applicationProtocol
        self.serverName = serverName
        self.resumed = resumed
        self.peerCertificateSizesBytes = peerCertificateSizesBytes
    }
}
