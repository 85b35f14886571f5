import TLSEngine

/// TLS settings of one connection: the context with its certificates and rules, and what belongs to this connection
/// only.
package struct SecureSettings: Sendable {
    package typealias Decide =
        @Sendable (VerificationRequest, @escaping @Sendable (VerificationDecision) -> Void) -> Void
    package typealias ChooseIdentity = @Sendable ([[UInt8]], @escaping @Sendable (TLSIdentity?) -> Void) -> Void

    package var context: TLSContext
    /// Client: the name or address to ask for and to verify.
    package var serverName: String?
    /// Client: sessions are kept and resumed under this key; `nil` resumes none. Equal keys must mean the same server
    /// and purpose.
    package var resumptionKey: String?
    /// Client: where a session permits it, the connection is given to its owner before the handshake, and what the owner
    /// writes in that turn is sent as early data (RFC 8446 §2.3). The server may get it again by an attacker, so that it must
    /// not change anything there; if the server does not take it, it is sent again behind the handshake. Default: false.
    package var sendsEarlyData = false
    /// For the handshake, without the time that `decide` and `chooseIdentity` take.
    package var timeout: Duration = .seconds(10)
    /// Bytes that the peer may send before the handshake is over, counted after each read; `nil` leaves it to OpenSSL,
    /// which bounds each message.
    package var handshakeByteLimit: Int?
    /// Asked when the context's configuration says `delegatesVerification`; may answer at any time, from any thread. `nil`
    /// rejects.
    package var decide: Decide?
    /// Asked for a client certificate when the configuration says `delegatesClientCertificate`; `nil` gives none.
    package var chooseIdentity: ChooseIdentity?

    package init(context: TLSContext, serverName: String? = nil) {
        self.context = context
        self.serverName = serverName
    }
}
