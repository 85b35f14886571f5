import ByteKernels
import HTTPTransport
import Synchronization
import TLSEngine
import WireText

/// A consumer that records its calls, and pulls as configured.
final class ExchangeRecorder: ExchangeConsumer {
    struct Entry: Sendable {
        var connections: [ConnectionMetadata] = []
        var informational: [Int] = []
        var head: ResponseHead?
        var framing: ResponseFraming?
        var content: [UInt8] = []
        var sent = 0
        var ends = 0
        var metrics: ExchangeMetrics?
        var end: ExchangeEnd?
        var text: String { String(decoding: self.content, as: UTF8.self) }
    }

    private let state = Mutex(Entry())
    private let ended = Gate()
    private let credit = Credit()
    private let isSuspended = Mutex(false)
    let headCame = Gate()
    let contentCame = Gate()
    let connected = Gate()
    private let verify: VerificationDecision?
    private let identity: TLSIdentity?
    private let onContent: (@Sendable (Int) -> Void)?

    init(
        verify: VerificationDecision? = .accept, identity: TLSIdentity? = nil,
        onContent: (@Sendable (Int) -> Void)? = nil
    ) {
        self.verify = verify
        self.identity = identity
        self.onContent = onContent
    }

    var now: Entry { self.state.withLock { $0 } }

    /// All events, after the exchange has ended.
    func whole() async -> Entry {
        await self.ended.pass()
        return self.now
    }

    var demand: ContentDemand { self.isSuspended.withLock { $0 } ? .suspended : self.credit.demand }

    func pull(_ count: Int, _ exchange: Exchange) {
        self.credit.add(count)
        exchange.demandChanged()
    }

    func suspend(_ exchange: Exchange) {
        self.isSuspended.withLock { $0 = true }
        exchange.demandChanged()
    }

    func resume(_ exchange: Exchange) {
        self.isSuspended.withLock { $0 = false }
        exchange.demandChanged()
    }

    func connectionReady(_ metadata: ConnectionMetadata) {
        self.state.withLock { $0.connections.append(metadata) }
        self.connected.open()
    }

    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        guard let verify = self.verify else { return }
        answer(verify)
        answer(.reject)
    }

    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) {
        answer(self.identity)
    }

    func bodySent(_ count: Int) {
        self.state.withLock { $0.sent += count }
    }

    func informationalHeadReceived(_ head: ResponseHead) {
        self.state.withLock { $0.informational.append(head.status) }
    }

    func headReceived(_ head: ResponseHead, framing: ResponseFraming) {
        self.state.withLock {
            $0.head = head
            $0.framing = framing
        }
        self.headCame.open()
    }

    func contentReceived(_ bytes: RawSpan) {
        let copy = [UInt8](bytes)
        self.credit.spend(copy.count)
        self.state.withLock { $0.content += copy }
        self.contentCame.open()
        self.onContent?(copy.count)
    }

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) {
        self.state.withLock {
            $0.ends += 1
            $0.end = end
            $0.metrics = metrics
        }
        for gate in [self.connected, self.headCame, self.contentCame, self.ended] { gate.open() }
    }
}

extension ExchangeRecorder.Entry {
    var failure: ExchangeFailure? {
        if case .failed(let failure) = self.end { failure } else { nil }
    }

    var trailers: [FieldLine]? {
        if case .finished(let trailers) = self.end { trailers } else { nil }
    }
}

extension ConnectionPool {
    /// Makes the exchange and waits for its end.
    func perform(_ request: ExchangeRequest, pull: Int = .max, _ recorder: ExchangeRecorder = ExchangeRecorder()) async
        -> ExchangeRecorder.Entry
    {
        let exchange = self.exchange(request, consumer: recorder)
        recorder.pull(pull, exchange)
        exchange.start()
        return await recorder.whole()
    }

    /// Waits until the pool's loop has done all earlier calls.
    func settle() async {
        let recorder = ExchangeRecorder()
        self.exchange(ExchangeRequest(ServerEndpoint(.http, host: "a.test")), consumer: recorder).cancel()
        _ = await recorder.whole()
    }
}
