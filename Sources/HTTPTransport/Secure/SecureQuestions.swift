import TLSEngine

/// Who is asked in the middle of a handshake. Both may answer at any time, from any thread, once.
package struct SecureQuestions {
    package typealias Verify = (VerificationRequest, @escaping @Sendable (VerificationDecision) -> Void) -> Void
    package typealias ChooseIdentity = ([[UInt8]], @escaping @Sendable (TLSIdentity?) -> Void) -> Void

    /// Asked if the context's configuration says `asksForDecision`; `nil` rejects.
    package var verify: Verify?
    /// Client: asked if the configuration says `asksForClientCertificate`; `nil` shows none.
    package var chooseIdentity: ChooseIdentity?

    package init(verify: Verify? = nil, chooseIdentity: ChooseIdentity? = nil) {
        self.verify = verify
        self.chooseIdentity = chooseIdentity
    }
}
