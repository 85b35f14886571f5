import TLSEngine

/// How one connection is secured: the context with its certificates and rules, and what is special to this connection.
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
    /// For the handshake, without the time that `decide` and `chooseIdentity` take.
    package var timeout: Duration = .seconds(10)
    /// Bytes that the peer may send before the handshake is over, counted after each read; `nil` leaves it to OpenSSL,
    /// which bounds each message.
    package var handshakeByteLimit: Int?
    /// Asked when the context's configuration says `asksForDecision`; may answer at any time, from any thread. `nil`
    /// rejects.
    package var decide: Decide?
    /// Asked for a client certificate when the configuration says `asksForClientCertificate`; `nil` gives none.
    package var chooseIdentity: ChooseIdentity?

    package init(context: TLSContext, serverName: String? = nil) {
        self.context = context
        self.serverName = serverName
    }
}
