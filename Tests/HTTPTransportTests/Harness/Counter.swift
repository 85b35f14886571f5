import HTTPTransport
import TLSEngine
import WireText

/// A consumer that counts content without keeping it.
final class Counter: ExchangeConsumer {
    let headCame = Gate()
    let ended = Gate()
    private let credit = Credit()
    private let onContent: @Sendable (Int) -> Void

    init(onContent: @escaping @Sendable (Int) -> Void) { self.onContent = onContent }

    var demand: ContentDemand { self.credit.demand }

    func pull(_ count: Int, _ exchange: Exchange) {
        self.credit.add(count)
        exchange.demandChanged()
    }

    func connectionReady(_ metadata: ConnectionMetadata) {}
    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        answer(.reject)
    }
    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) { answer(nil) }
    func bodySent(_ count: Int) {}
    func informationalHeadReceived(_ head: ResponseHead) {}
    func headReceived(_ head: ResponseHead, framing: ResponseFraming) { self.headCame.open() }
    func contentReceived(_ bytes: RawSpan) {
        self.credit.spend(bytes.byteCount)
        self.onContent(bytes.byteCount)
    }
    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) { self.ended.open() }
}
