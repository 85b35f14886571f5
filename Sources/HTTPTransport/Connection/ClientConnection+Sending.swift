import NIOCore
import StreamTransport

extension ClientConnection {
    /// Sends the request of `exchange`, whose connection this now is.
    func run(_ exchange: Exchange) {
        guard let context = self.context else { return }
        self.phase = .busy(exchange)
        exchange.phase = .running(self)
        self.wire.beginExchange(self)
        self.mark(exchange.order.trafficClass)
        if exchange.order.isMeasured {
            exchange.metrics.connection = self.facts
            exchange.metrics.timings = self.facts.timings
        }
        exchange.consumer?.connectionReady(self.facts)
        guard case .busy = self.phase else { return }
        self.lastProgress = .now()
        self.watch(exchange)
        self.sendHead(exchange, context)
        guard case .busy = self.phase else { return }
        if exchange.progress.sending == .body { self.pumpBody() }
        self.readIfWanted()
    }

    private func mark(_ wanted: TrafficClass) {
        guard wanted != self.trafficClass, let peer = self.facts.peerAddress,
            let mark = wanted.socketOption(toward: peer)
        else { return }
        self.trafficClass = wanted
        let option = ChannelOptions.socket(SocketOptionLevel(mark.level), SocketOptionName(mark.name))
        // A hint: where the system does not take it, the request goes all the same.
        try? self.context?.channel.syncOptions?.setOption(option, value: SocketOptionValue(mark.value))
    }

    private func sendHead(_ exchange: Exchange, _ context: ChannelHandlerContext) {
        let before = self.wire.bytesSent
        exchange.metrics.requestStart = exchange.instant
        var head = context.channel.allocator.buffer(capacity: 512)
        exchange.plan.head.write(to: &head)
        self.write(head, context)
        exchange.metrics.requestHeadBytes = self.wire.bytesSent - before
        self.bodyStart = self.wire.bytesSent
        switch exchange.progress.sending {
        case .done:
            context.flush()
            exchange.metrics.requestEnd = exchange.instant
        case .awaitingContinue:
            context.flush()
            self.awaitContinue(exchange, context)
        // The first piece leaves together with the head.
        case .body, .abandoned: break
        }
    }

    private func awaitContinue(_ exchange: Exchange, _ context: ChannelHandlerContext) {
        guard let timeout = exchange.plan.continueTimeout else { return }
        self.continueTimer = context.eventLoop.assumeIsolated().scheduleTask(in: .bounded(timeout)) {
            guard case .busy(let current) = self.phase, current === exchange else { return }
            if exchange.progress.continueTimedOut() { self.pumpBody() }
        }
    }

    /// Sends the next piece of the body, unless one is still on its way.
    func pumpBody() {
        guard case .busy(let exchange) = self.phase, exchange.progress.sending == .body, !self.isWritingPiece,
            let step = exchange.body?.next(), let context = self.context
        else { return }
        switch step {
        case .piece(let piece): self.send(piece, exchange, context)
        case .end:
            self.endBody(exchange, context)
            context.flush()
            exchange.metrics.requestEnd = exchange.instant
            self.progressed()
        case .later: context.flush()
        case .failed(let failure): self.fail(.body(failure))
        }
    }

    private func send(_ piece: ByteBuffer, _ exchange: Exchange, _ context: ChannelHandlerContext) {
        let count = piece.readableBytes
        self.isWritingPiece = true
        self.lastProgress = .now()
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { result in self.pieceWritten(result, count, exchange) }
        if exchange.plan.framing == .chunked {
            self.write(ByteBuffer(string: "\(String(count, radix: 16))\r\n"), context)
            self.write(piece, context)
            self.write(ByteBuffer(staticString: "\r\n"), context, promise)
        } else {
            self.write(piece, context, promise)
        }
        // The last byte and the end are one step, so that no answer can come between them.
        if exchange.body?.isExhausted ?? true { self.endBody(exchange, context) }
        context.flush()
    }

    private func endBody(_ exchange: Exchange, _ context: ChannelHandlerContext) {
        exchange.progress.bodyEnded()
        if exchange.plan.framing == .chunked { self.write(ByteBuffer(staticString: "0\r\n\r\n"), context) }
        exchange.metrics.requestBodyBytes = self.wire.bytesSent - self.bodyStart
    }

    private func write(
        _ bytes: ByteBuffer, _ context: ChannelHandlerContext, _ promise: EventLoopPromise<Void>? = nil
    ) {
        context.write(self.wrapOutboundOut(.byteBuffer(bytes)), promise: promise)
    }

    private func pieceWritten(_ result: Result<Void, any Error>, _ count: Int, _ exchange: Exchange) {
        self.isWritingPiece = false
        guard case .busy(let current) = self.phase, current === exchange else { return }
        if case .failure(let error) = result {
            // The end of the connection follows.
            self.lossCause = self.lossCause ?? TransportFailure(error)
            return
        }
        self.progressed()
        exchange.metrics.requestContentBytes += Int64(count)
        exchange.metrics.requestBodyBytes = self.wire.bytesSent - self.bodyStart
        if exchange.progress.sending == .done { exchange.metrics.requestEnd = exchange.instant }
        exchange.consumer?.bodySent(count)
        // In another turn, so that a fast peer does not keep the loop from everybody else.
        self.context?.eventLoop.assumeIsolated().execute { self.pumpBody() }
    }
}
