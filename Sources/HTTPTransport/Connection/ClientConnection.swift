import NIOCore
import StreamTransport
import TLSEngine

/// One connection to a server, as a channel's last handler: carries one exchange at a time and rests in the pool
/// between them. Performs what the exchange's progress decides.
///
/// Confined to its event loop.
final class ClientConnection: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = Never
    typealias OutboundOut = IOData

    enum Phase {
        case opening(ConnectionAttempt)
        case idle
        case busy(Exchange)
        /// The response of the exchange is complete; what comes of the connection is decided when the read is over.
        case finished(Exchange, trailers: [HeaderField], keepsAlive: Bool)
        /// Not HTTP any more.
        case upgraded
        case closed
    }

    let wire: WireHandler
    let limits: MessageLimits
    let pool: ConnectionPool
    let key: PoolKey
    /// Of those that the pool had when it was told to retire them all.
    let generation: Int
    var facts = ConnectionFacts()
    var phase: Phase
    var context: ChannelHandlerContext?
    var exchangesServed = 0
    /// What its packets are marked with.
    var trafficClass = TrafficClass.standard
    /// Since when it rests.
    var idleSince = NIODeadline.now()
    /// What the system said before the connection ended.
    var lossCause: TransportFailure?
    /// A piece of the body is on its way to the system.
    var isWritingPiece = false
    /// The piece's bytes on the wire before it was written.
    var bodyStart: Int64 = 0
    var lastProgress = NIODeadline.now()
    /// What waited for the system when the deadline last looked.
    var unsentBytes = 0
    var deadline: (at: NIODeadline, task: Scheduled<Void>)?
    var continueTimer: Scheduled<Void>?
    private var awaitsRead = false

    init(_ attempt: ConnectionAttempt, wire: WireHandler, limits: MessageLimits) {
        self.phase = .opening(attempt)
        self.wire = wire
        self.limits = limits
        self.pool = attempt.pool
        self.key = attempt.key
        self.generation = attempt.pool.generation
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
    }

    /// Whether the server has left it open behind a response, for another one or for a while.
    var hasProvenToStay: Bool {
        self.exchangesServed > 1 || NIODeadline.now() - self.idleSince >= .milliseconds(100)
    }

    var isActive: Bool { self.context?.channel.isActive ?? false }

    var busyExchange: Exchange? {
        switch self.phase {
        case .busy(let exchange), .finished(let exchange, _, _): exchange
        case .opening, .idle, .upgraded, .closed: nil
        }
    }

    // MARK: Reading

    /// Reads on unless the consumer is behind. An idle connection reads too, to learn that the server closed it.
    func readIfWanted() {
        guard !self.awaitsRead, let context = self.context else { return }
        switch self.phase {
        case .busy(let exchange):
            guard exchange.wantsBytes else { return }
        case .idle: break
        case .opening, .finished, .upgraded, .closed: return
        }
        self.awaitsRead = true
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        self.awaitsRead = false
        self.settle()
        self.readIfWanted()
        context.fireChannelReadComplete()
    }

    // MARK: Ending

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let facts = event as? TLSFacts, case .opening(let attempt) = self.phase { attempt.secured(facts, on: self) }
        // The server sends no more, so there will be no other response.
        if event as? ChannelEvent == .inputClosed { self.close() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.settle()
        self.connectionEnded()
        context.fireChannelInactive()
    }

    /// The exchange gave up; nobody can tell any more where its response would end.
    func abandon() {
        self.close()
    }

    /// Closes; the exchange under way, if it has not ended, is told what it lost.
    func close() {
        if case .finished(let exchange, let trailers, _) = self.phase {
            self.phase = .finished(exchange, trailers: trailers, keepsAlive: false)
        }
        self.settle()
        self.connectionEnded()
        self.context?.close(promise: nil)
    }

    /// Closes, and tells nobody: the pool has forgotten it already.
    func discard() {
        self.phase = .closed
        self.wire.stop()
        self.cancelTimers()
        self.context?.close(promise: nil)
    }

    func noteAddresses() {
        guard let channel = self.context?.channel else { return }
        self.facts.localAddress = channel.localAddress.flatMap { StreamTransport.SocketAddress($0) }
        self.facts.peerAddress = channel.remoteAddress.flatMap { StreamTransport.SocketAddress($0) }
    }

    private func connectionEnded() {
        let phase = self.phase
        if case .closed = phase { return }
        self.phase = .closed
        self.wire.stop()
        self.cancelTimers()
        switch phase {
        case .opening(let attempt): attempt.connectionEnded(self.lossCause, on: self)
        case .busy(let exchange):
            self.pool.connectionClosed(self)
            self.lose(exchange)
        case .idle, .finished: self.pool.connectionClosed(self)
        case .upgraded, .closed: break
        }
    }

    private func cancelTimers() {
        self.deadline?.task.cancel()
        self.deadline = nil
        self.continueTimer?.cancel()
        self.continueTimer = nil
    }

    /// Fails the exchange under way, and closes.
    func fail(_ failure: ExchangeFailure) {
        switch self.phase {
        case .opening(let attempt): attempt.failed(failure, on: self)
        case .busy(let exchange): exchange.fail(failure)
        // The response is complete; what came behind it only ends the connection.
        case .finished, .idle, .upgraded, .closed: self.close()
        }
    }
}
