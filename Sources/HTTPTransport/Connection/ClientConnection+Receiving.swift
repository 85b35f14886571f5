import NIOCore
import StreamTransport
import TLSEngine

extension ClientConnection {
    /// - Returns: how the end of the content is told; `nil` where none follows that is of interest.
    func headReceived(_ head: ResponseHead) -> ResponseFraming? {
        guard case .busy(let exchange) = self.phase else {
            self.fail(.violation(.unsolicited))
            return nil
        }
        self.progressed()
        if exchange.metrics.responseStart == nil { exchange.metrics.responseStart = exchange.instant }
        guard !head.isInformational else {
            self.informationalReceived(head, exchange)
            return nil
        }
        switch exchange.progress.headReceived(head) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .upgrade: exchange.consumer?.headReceived(head, framing: .none)
        case .tell(let framing):
            exchange.consumer?.headReceived(head, framing: framing)
            if case .busy = self.phase { return framing }
        }
        return nil
    }

    private func informationalReceived(_ head: ResponseHead, _ exchange: Exchange) {
        switch exchange.progress.informationalReceived(head, limit: self.limits.informationalHeads) {
        case .refuse(let violation): self.fail(.violation(violation))
        case .tell(let startsBody):
            exchange.consumer?.informationalHeadReceived(head)
            if startsBody { self.pumpBody() }
        }
    }

    func contentReceived(_ bytes: ByteBuffer) {
        guard case .busy(let exchange) = self.phase else { return self.fail(.violation(.unsolicited)) }
        self.progressed()
        exchange.progress.contentReceived(bytes.readableBytes)
        exchange.contentReceived(bytes)
    }

    func responseEnded(_ trailers: [HeaderField]) {
        guard case .busy(let exchange) = self.phase else { return }
        let keepsAlive = exchange.progress.responseEnded()
        exchange.metrics.responseEnd = exchange.instant
        self.phase = .finished(exchange, trailers: trailers, keepsAlive: keepsAlive)
    }

    /// Behind a read: decides over a connection whose response is complete. The consumer is told last, so that its next
    /// order finds the connection.
    func settle() {
        guard case .finished(let exchange, let trailers, let keepsAlive) = self.phase else { return }
        self.note(exchange)
        self.continueTimer?.cancel()
        self.continueTimer = nil
        if case .complete = exchange.progress.receiving {
            if exchange.progress.isUpgraded { return self.handOver(exchange) }
            if keepsAlive, self.wire.endExchange(), self.isActive {
                self.phase = .idle
                self.idleSince = .now()
                self.pool.connectionFreed(self)
            } else {
                self.phase = .idle
                self.close()
            }
        }
        exchange.responseFinished(trailers)
    }

    /// What the wire has counted of this exchange.
    private func note(_ exchange: Exchange) {
        exchange.metrics.responseHeadBytes = self.wire.headBytes
        exchange.metrics.responseBodyBytes = self.wire.bodyBytes
    }

    private func handOver(_ exchange: Exchange) {
        self.phase = .upgraded
        self.pool.connectionClosed(self)
        guard let connection = UpgradedConnection(self) else { return exchange.fail(.cancelled) }
        exchange.end(.upgraded(connection))
    }

    /// The connection is gone and the response is not whole.
    func lose(_ exchange: Exchange) {
        self.note(exchange)
        guard !exchange.isEnded else { return }
        switch exchange.progress.loss {
        case .none: exchange.responseFinished([])
        case .withinContent(let received, let expected):
            self.end(exchange, .truncated(received: received, expected: expected, cause: self.lossCause))
        case .beforeHead: self.end(exchange, .connectionLost(self.loss(exchange, responseBegan: true)))
        case .beforeResponse:
            let failure = ExchangeFailure.connectionLost(self.loss(exchange, responseBegan: false))
            // The server may have closed the connection for being idle, just as we wrote.
            let isStale = self.facts.isReused && self.wire.headBytes == 0
            guard isStale, exchange.prepareToRepeat() else { return self.end(exchange, failure) }
            self.pool.repeatOnFreshConnection(exchange)
        }
    }

    private func end(_ exchange: Exchange, _ failure: ExchangeFailure) {
        exchange.phase = .ordered
        exchange.fail(failure)
    }

    private func loss(_ exchange: Exchange, responseBegan: Bool) -> ConnectionLoss {
        ConnectionLoss(
            cause: self.lossCause, wasReused: self.facts.isReused,
            responseBegan: responseBegan || self.wire.headBytes > 0, wasRepeated: exchange.isRepeated)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case let violation as ResponseViolation: self.fail(.violation(violation))
        case let failure as TLSFailure: self.fail(.securing(failure))
        default:
            self.lossCause = TransportFailure(error)
            self.close()
        }
    }
}
