import NIOCore
import StreamTransport
import TLSEngine

/// TLS in a channel's pipeline, in either role: records below, plaintext above.
///
/// Above it tells, in this order: the `TLSFacts` as a user event when the handshake is over; plaintext, at most one
/// buffer for each read below; `ChannelEvent.inputClosed` when the peer said close_notify. What goes wrong is an error:
/// a `TLSFailure`, or `TransportFailure.truncated` when the transport ended without close_notify. It reads by itself
/// until the handshake is over, so that it works with automatic reading off.
package final class SecureHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = IOData
    package typealias OutboundOut = ByteBuffer

    enum Phase {
        case handshaking
        /// The handshake waits for an answer of ours, and nothing is read meanwhile.
        case asking
        case open
        case ended
    }

    /// Room beside the length of what was received: OpenSSL may hold the greater part of one more record.
    static let recordRoom = 17 << 10

    let connection: SecureConnection
    let questions: SecureQuestions
    var context: ChannelHandlerContext?
    var phase = Phase.handshaking
    var inputEnded = false
    /// A read that the pipeline above asked for during the handshake.
    var owesRead = false
    /// Written, but not encrypted yet; and who wants to know that it has left.
    var pending: [ByteBuffer] = []
    var pendingPromise: EventLoopPromise<Void>?
    var owesFlush = false
    /// Told when the clock of the handshake stops (an answer of ours is awaited) and goes on.
    package var askingChanged: ((Bool) -> Void)?

    /// - Parameters:
    ///   - serverName: client: the name to ask for and to verify.
    ///   - records: may be shared by the handlers of one event loop, so that an idle connection owns no buffer.
    /// - Throws: what `SecureConnection` throws.
    package init(
        _ context: TLSContext, serverName: String? = nil, resumptionKey: String? = nil,
        questions: SecureQuestions = SecureQuestions(), records: CiphertextBuffer = CiphertextBuffer()
    ) throws(TLSFailure) {
        self.connection = try SecureConnection(
            context, serverName: serverName, resumptionKey: resumptionKey, output: records)
        self.questions = questions
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { self.begin(context) }
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.dropPending(ChannelError.ioOnClosedChannel)
    }

    package func channelActive(context: ChannelHandlerContext) {
        self.begin(context)
        context.fireChannelActive()
    }

    private func begin(_ context: ChannelHandlerContext) {
        self.connection.start()
        self.sendRecords(context, promise: nil)
        context.read()
    }

    // MARK: Received

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        self.pull(self.unwrapInboundIn(data), context)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if case .handshaking = self.phase { context.read() }
    }

    package func read(context: ChannelHandlerContext) {
        switch self.phase {
        case .handshaking, .asking: self.owesRead = true
        case .open, .ended: context.read()
        }
    }

    /// Everything that `ciphertext` holds.
    private func pull(_ ciphertext: ByteBuffer, _ context: ChannelHandlerContext) {
        guard self.phase != .ended else { return }
        var plain = ByteBuffer(repeating: 0, count: ciphertext.readableBytes + Self.recordRoom)
        var used = 0
        var filled = 0
        while self.phase != .ended {
            if filled == plain.readableBytes { self.deliver(&plain, &filled, context) }
            guard let event = self.next(ciphertext, &used, &plain, filled) else { break }
            if case .plaintext(let count) = event {
                filled += count
            } else {
                self.deliver(&plain, &filled, context)
                self.act(on: event, context)
            }
        }
        self.deliver(&plain, &filled, context)
        self.sendRecords(context, promise: nil)
    }

    private func next(
        _ ciphertext: ByteBuffer, _ used: inout Int, _ plain: inout ByteBuffer, _ filled: Int
    ) -> SecureEvent? {
        var room = plain.mutableReadableBytesSpan
        let count = room.byteCount
        var free = room._mutatingExtracting(filled..<count)
        return self.connection.nextEvent(ciphertext.readableBytesSpan, at: &used, plaintext: &free)
    }

    private func deliver(_ plain: inout ByteBuffer, _ filled: inout Int, _ context: ChannelHandlerContext) {
        guard filled > 0, let bytes = plain.readSlice(length: filled) else { return }
        filled = 0
        if plain.readableBytes == 0 { plain = ByteBuffer(repeating: 0, count: Self.recordRoom) }
        context.fireChannelRead(self.wrapInboundOut(bytes))
    }

    private func act(on event: SecureEvent, _ context: ChannelHandlerContext) {
        switch event {
        case .plaintext: break
        case .handshakeCompleted(let facts): self.handshakeCompleted(facts, context)
        case .verificationRequested(let request): self.askForDecision(request, context)
        case .clientCertificateRequested(let issuers): self.askForIdentity(issuers, context)
        case .inputClosed:
            self.inputEnded = true
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        case .failed(let failure): self.fail(failure, context)
        }
    }

    private func handshakeCompleted(_ facts: TLSFacts, _ context: ChannelHandlerContext) {
        self.phase = .open
        self.sendRecords(context, promise: nil)
        context.fireUserInboundEventTriggered(facts)
        if self.owesFlush { self.flush(context: context) }
        if self.owesRead { context.read() }
        self.owesRead = false
    }

    /// Ends the connection, after the alert if there is one.
    func fail(_ failure: TLSFailure, _ context: ChannelHandlerContext) {
        guard self.phase != .ended else { return }
        self.phase = .ended
        self.sendRecords(context, promise: nil)
        self.dropPending(failure)
        context.fireErrorCaught(failure)
        context.close(promise: nil)
    }

    package func channelInactive(context: ChannelHandlerContext) {
        let phase = self.phase
        self.phase = .ended
        self.dropPending(ChannelError.ioOnClosedChannel)
        switch phase {
        case .handshaking, .asking:
            context.fireErrorCaught(
                TLSFailure(.closedDuringHandshake, reasons: ["the peer closed during the handshake"]))
        case .open:
            if !self.inputEnded { context.fireErrorCaught(TransportFailure.truncated) }
        case .ended: break
        }
        context.fireChannelInactive()
    }

    // MARK: Questions

    private func askForDecision(_ request: VerificationRequest, _ context: ChannelHandlerContext) {
        guard let verify = self.questions.verify else { return self.connection.resolveVerification(.reject) }
        self.setAsking(true)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let eventLoop = context.eventLoop
        verify(request) { decision in
            eventLoop.execute { bound.value.answered { $0.resolveVerification(decision) } }
        }
    }

    private func askForIdentity(_ issuers: [[UInt8]], _ context: ChannelHandlerContext) {
        guard let choose = self.questions.chooseIdentity else { return self.connection.provideClientCertificate(nil) }
        self.setAsking(true)
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        let eventLoop = context.eventLoop
        choose(issuers) { identity in
            eventLoop.execute { bound.value.answered { $0.provideClientCertificate(identity) } }
        }
    }

    private func answered(_ answer: (SecureConnection) -> Void) {
        guard case .asking = self.phase, let context = self.context else { return }
        self.setAsking(false)
        answer(self.connection)
        self.pull(ByteBuffer(), context)
        if case .handshaking = self.phase { context.read() }
    }

    private func setAsking(_ asking: Bool) {
        self.phase = asking ? .asking : .handshaking
        self.askingChanged?(asking)
    }
}
