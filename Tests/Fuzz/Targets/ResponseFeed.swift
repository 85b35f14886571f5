import ByteKernels
import HTTPTransport
import NIOCore
import NIOEmbedded
import TLSEngine
import WireText

/// One exchange on a channel without a network: what its consumer is told of the bytes that a server sends, and of the end
/// of the connection behind them.
final class ResponseFeed: ExchangeConsumer, @unchecked Sendable {
    enum End: Equatable {
        case finished(trailers: [FieldLine])
        case truncated
        /// The server broke a rule.
        case refused
    }

    private(set) var content: [UInt8] = []
    private(set) var end: End?
    private var fault: FuzzFault?

    /// - Parameter pieces: as they arrive; what comes behind the end of the exchange is not sent any more.
    init(_ pieces: [[UInt8]]) throws(FuzzFault) {
        do {
            try self.run(pieces)
        } catch {
            throw FuzzFault("the channel failed: \(error)")
        }
        if let fault { throw fault }
        try FuzzFault.expect(self.end != nil, "the connection ended, and the exchange did not")
    }

    private func run(_ pieces: [[UInt8]]) throws {
        let loop = EmbeddedEventLoop()
        let channel = EmbeddedChannel(loop: loop)
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 80), promise: nil)
        let pool = ConnectionPool(settings: PoolSettings(), on: loop)
        var order = ExchangeRequest(ServerEndpoint(.http, host: "fuzz.test"))
        order.idleTimeout = nil
        let exchange = pool.exchange(order, consumer: self)
        try pool.run(exchange, on: channel)
        for piece in pieces where self.end == nil { try channel.writeInbound(ByteBuffer(bytes: piece)) }
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    // MARK: What is told

    var demand: ContentDemand { .bytes(.max) }
    func connectionReady(_ facts: ConnectionMetadata) {}
    func bodySent(_ count: Int) {}
    func informationalHeadReceived(_ head: ResponseHead) {}
    func headReceived(_ head: ResponseHead, framing: ResponseFraming) {}
    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) { answer(nil) }

    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        answer(.reject)
    }

    func contentReceived(_ bytes: RawSpan) {
        if self.end != nil { self.fault = FuzzFault("content behind the end") }
        self.content.append(bytes)
    }

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) {
        if self.end != nil { self.fault = FuzzFault("a second end") }
        switch end {
        case .finished(let trailers): self.end = .finished(trailers: trailers)
        case .failed(.violation): self.end = .refused
        case .failed(.truncated), .failed(.connectionLost): self.end = .truncated
        case .failed(let failure):
            self.end = .refused
            self.fault = FuzzFault("failed by \(failure)")
        case .upgraded(let connection):
            connection.close()
            self.fault = FuzzFault("upgraded behind a good head")
        }
    }
}
