import ByteKernels
import HTTPTransport
import StreamTransport
import TLSEngine
import WireText

/// Sends one DELETE request whose response does not matter. It ends by itself, soon, whatever the server does.
final class UploadDeletion: @unchecked Sendable {  // Its state is used on the pool's loop only.
    /// For the whole exchange.
    static let timeout = Duration.seconds(5)
    /// Most bytes of the response's content that are read, so that the connection can be reused.
    private static let contentLimit = 64 << 10

    private let pool: ConnectionPool
    private let timer = LoopTimer()
    private var exchange: Exchange?
    private var contentLeft = UploadDeletion.contentLimit

    private init(_ pool: ConnectionPool) {
        self.pool = pool
    }

    static func send(_ request: ExchangeRequest, in pool: ConnectionPool) {
        let deletion = UploadDeletion(pool)
        let exchange = pool.exchange(request, consumer: deletion)
        deletion.exchange = exchange
        pool.loop.arm(deletion.timer, after: Self.timeout, target: deletion)
        exchange.start()
    }
}

extension UploadDeletion: TimerTarget {
    func timerFired(_ timer: LoopTimer) { self.exchange?.cancel() }
}

extension UploadDeletion: ExchangeConsumer {
    var demand: ContentDemand { .bytes(max(0, self.contentLeft)) }

    func connectionReady(_ metadata: ConnectionMetadata) {}

    /// No delegate is asked: the task has ended.
    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        answer(request.result.isValid ? .accept : .reject)
    }

    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) { answer(nil) }

    func bodySent(_ count: Int) {}
    func informationalHeadReceived(_ head: ResponseHead) {}
    func headReceived(_ head: ResponseHead, framing: ResponseFraming) {}

    func contentReceived(_ bytes: RawSpan) {
        self.contentLeft -= bytes.byteCount
        if self.contentLeft <= 0 { self.exchange?.cancel() }
    }

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) {
        self.pool.loop.disarm(self.timer)
        self.exchange = nil
        if case .detached(let connection) = end { connection.close() }
    }
}
