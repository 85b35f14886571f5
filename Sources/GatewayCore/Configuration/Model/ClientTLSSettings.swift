/// TLS towards an upstream. Verification is on unless `verifies` says otherwise.
package struct ClientTLSSettings: Sendable, Equatable {
    /// PEM file of authorities that are trusted instead of the system's; `nil` trusts the system's.
    package var authorities: String?
    /// PEM or DER files with the current revocation lists of every authority in the chain; empty looks in none.
    package var revocationLists: [String] = []
    /// What we show when asked for a certificate.
    package var identity: CertificateFiles?
    /// The name asked for and verified; `nil` is the URL's host.
    package var serverName: String?
    /// Off, any certificate will do: only for tests. Pins are still checked.
    package var verifies = true
    /// Public keys of which the peer must show one; empty asks for none.
    package var pins: [PublicKeyPin] = []
    /// Application protocols offered; empty offers none towards streams, and `http/1.1` towards WebSockets.
    package var alpn: [String] = []
    package var minimumVersion = TLSVersionFloor.tls12
    /// As for a listener.
    package var keyLog: String?

    package init() {}
}
