import TLSEngine

/// Whoever ordered an exchange: told what happens, always on the exchange's event loop. It is held until
/// `exchangeEnded`, then dropped.
///
/// It must not block: other exchanges share the loop.
package protocol ExchangeConsumer: AnyObject, Sendable {
    /// A connection was opened or found, and the request begins to leave on it. Comes a second time when the request is
    /// repeated on a fresh connection.
    func connectionReady(_ facts: ConnectionFacts)

    /// The TLS context asks for a decision over the server's certificate. `answer` may be called at any time, from any
    /// thread; a second answer is ignored, and no clock runs meanwhile.
    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void)

    /// The server asks for a certificate of ours, signed by one of `issuers` (DER names; none means any). `nil` shows
    /// none.
    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void)

    /// `count` bytes of the request's body, without framing, were taken by the system.
    func bodySent(_ count: Int)

    /// An informational head (1xx, not 101). There may be several.
    func informationalHeadReceived(_ head: ResponseHead)

    /// The final head. Content follows as far as it is pulled.
    func headReceived(_ head: ResponseHead, framing: ResponseFraming)

    /// The next bytes of content; valid during the call.
    func contentReceived(_ bytes: RawSpan)

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics)
}
