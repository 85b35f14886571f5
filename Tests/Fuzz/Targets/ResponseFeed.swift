import ByteKernels
import HTTPTransport
import SimulatedNetwork
import StreamTransport
import TLSEngine
import WireText

/// One exchange on a simulated network: the calls of its consumer for the bytes that a server sends before it ends the
/// connection.
final class ResponseFeed: ExchangeConsumer, @unchecked Sendable {
    enum End: Equatable {
        case finished(trailers: [FieldLine])
        case truncated
        /// The server broke a rule.
        case refused
    }

    private(set) var content: [UInt8] = []
    private(set) var end: End?
    private var fault: InvariantViolation?

    /// - Parameter pieces: as they arrive; pieces after the end of the exchange are not sent.
    init(_ pieces: [[UInt8]]) throws(InvariantViolation) {
        do {
            try self.run(pieces)
        } catch {
            throw InvariantViolation("the connection failed: \(error)")
        }
        if let fault { throw fault }
        try InvariantViolation.expect(self.end != nil, "the connection ended, and the exchange did not")
    }

    private func run(_ pieces: [[UInt8]]) throws(SystemError) {
        let network = SimulatedNetwork(seed: 1)
        let loops = (0..<2).map { _ in Self.makeLoop(on: network) }
        let server = try FeedingServer(on: loops[0])
        let pool = ConnectionPool(on: loops[1])
        var order = ExchangeRequest(ServerEndpoint(.http, host: "127.0.0.1", port: server.port))
        order.idleTimeout = nil
        pool.exchange(order, consumer: self).start()
        _ = network.settle()
        for piece in pieces where self.end == nil {
            server.send(piece)
            _ = network.settle()
        }
        server.finish()
        pool.close()
        _ = network.settle()
    }

    private static func makeLoop(on network: SimulatedNetwork) -> Loop {
        let system = network.makeSystem()
        let loop = Loop(system: system)
        system.drive { [weak loop] in loop?.turn() }
        return loop
    }

    // MARK: ExchangeConsumer

    var demand: ContentDemand { .bytes(.max) }
    func connectionReady(_ metadata: ConnectionMetadata) {}
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
        if self.end != nil { self.fault = InvariantViolation("content behind the end") }
        self.content.append(bytes)
    }

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics) {
        if self.end != nil { self.fault = InvariantViolation("a second end") }
        switch end {
        case .finished(let trailers): self.end = .finished(trailers: trailers)
        case .failed(.violation): self.end = .refused
        case .failed(.truncated), .failed(.connectionLost): self.end = .truncated
        case .failed(let failure):
            self.end = .refused
            self.fault = InvariantViolation("failed by \(failure)")
        case .detached(let connection):
            connection.close()
            self.fault = InvariantViolation("upgraded behind a good head")
        }
    }
}

/// Accepts one connection, ignores its input, and sends the given pieces. Confined to its loop.
private final class FeedingServer: SocketListenerOwner, TransportConsumer, @unchecked Sendable {
    private let loop: Loop
    private(set) var port: UInt16 = 0
    private var connection: SocketConnection?

    init(on loop: Loop) throws(SystemError) {
        self.loop = loop
        let listener = try SocketListener(.ipv4(address: 0x7F00_0001, port: 80), on: loop, owner: self)
        self.port = listener.address.port ?? 0
    }

    func send(_ bytes: [UInt8]) {
        self.loop.execute { bytes.withRawSpan { _ = self.connection?.write($0) } }
    }

    func finish() {
        self.loop.execute { self.connection?.shutdownOutput() }
    }

    func accepted(_ socket: AcceptedSocket, by listener: SocketListener) {
        self.connection = try? SocketConnection(adopting: socket.descriptor, peer: socket.peer, on: self.loop)
        self.connection?.consumer = self
    }

    func acceptingPaused(by listener: SocketListener, _ error: SystemError) {}
    func acceptingResumed(by listener: SocketListener) {}
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int { bytes.byteCount }
    func inputClosed() {}
    func outputProgressed() {}
    func transportEnded(_ end: TransportEnd) { self.connection = nil }
}
