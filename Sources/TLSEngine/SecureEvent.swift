/// What a secure connection has to tell its owner.
public enum SecureEvent: Sendable, Equatable {
    /// Both sides are keyed and the peer was accepted. Comes once.
    indirect case handshakeCompleted(TLSFacts)
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
