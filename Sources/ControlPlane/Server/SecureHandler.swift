import NIOCore
import StreamTransport
import TLSEngine

/// TLS in a channel's pipeline.
///
/// It fires, in this order: `TLSMetadata` as a user event after the handshake; plaintext, at most one buffer for each read
/// below; `ChannelEvent.inputClosed` on the peer's close_notify. Errors are a `TLSFailure`, or `TransportFailure.truncated`
/// if the transport ended without close_notify. During the handshake it reads by itself, so it works without `autoRead`.
package final class SecureHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = IOData
    package typealias OutboundOut = ByteBuffer

    private enum Phase {
        case handshaking
        case open
        case ended
    }

    /// Extra plaintext space: OpenSSL may hold most of one more record.
    private static let recordRoom = 17 << 10
    /// Pieces of at least this size are encrypted in place; smaller ones are joined first, so that a head and a short body
    /// share one record.
    private static let plaintextBufferLimit = 16 << 10

    private let connection: SecureConnection
    private var phase = Phase.handshaking
    private var inputEnded = false
    /// A handler above called `read` during the handshake.
    private var isReadPending = false
    /// Written but not encrypted yet.
    private var pendingPlaintext: [ByteBuffer] = []
    private var pendingPromise: EventLoopPromise<Void>?
    private var isFlushPending = false

    /// - Parameter serverName: client: the name for SNI and verification.
    /// - Throws: what `SecureConnection` throws.
    package init(_ context: TLSContext, serverName: String? = nil) throws(TLSFailure) {
        self.connection = try SecureConnection(context, serverName: serverName)
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { self.begin(context) }
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
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
        self.decrypt(self.unwrapInboundIn(data), context)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if case .handshaking = self.phase { context.read() }
    }

    package func read(context: ChannelHandlerContext) {
        switch self.phase {
        case .handshaking: self.isReadPending = true
        case .open, .ended: context.read()
        }
    }

    private func decrypt(_ ciphertext: ByteBuffer, _ context: ChannelHandlerContext) {
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
                self.handle(event, context)
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

    private func handle(_ event: SecureEvent, _ context: ChannelHandlerContext) {
        switch event {
        case .plaintext: break
        case .handshakeCompleted(let metadata): self.handshakeCompleted(metadata, context)
        // The contexts of the REST server delegate neither decision.
        case .verificationRequested: self.connection.resolveVerification(.reject)
        case .clientCertificateRequested: self.connection.provideClientCertificate(nil)
        case .inputClosed:
            self.inputEnded = true
            context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        case .failed(let failure): self.fail(failure, context)
        }
    }

    private func handshakeCompleted(_ metadata: TLSMetadata, _ context: ChannelHandlerContext) {
        self.phase = .open
        self.sendRecords(context, promise: nil)
        context.fireUserInboundEventTriggered(metadata)
        if self.isFlushPending { self.flush(context: context) }
        if self.isReadPending { context.read() }
        self.isReadPending = false
    }

    /// Sends the alert if there is one, and closes.
    private func fail(_ failure: TLSFailure, _ context: ChannelHandlerContext) {
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
        case .handshaking:
            context.fireErrorCaught(
                TLSFailure(.closedDuringHandshake, reasons: ["the peer closed during the handshake"]))
        case .open:
            if !self.inputEnded { context.fireErrorCaught(TransportFailure.truncated) }
        case .ended: break
        }
        context.fireChannelInactive()
    }

    // MARK: Sending

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard self.phase != .ended, case .byteBuffer(let bytes) = self.unwrapOutboundIn(data) else {
            // A file region would have to be read first, which is the caller's task.
            promise?.fail(self.phase == .ended ? ChannelError.ioOnClosedChannel : ChannelError.operationUnsupported)
            return
        }
        self.pendingPlaintext.append(bytes)
        guard let promise else { return }
        if let earlier = self.pendingPromise {
            earlier.futureResult.cascade(to: promise)
        } else {
            self.pendingPromise = promise
        }
    }

    package func flush(context: ChannelHandlerContext) {
        guard case .open = self.phase else {
            self.isFlushPending = true
            return
        }
        self.isFlushPending = false
        do throws(TLSFailure) {
            try self.encryptPending()
            let promise = self.pendingPromise
            self.pendingPromise = nil
            self.sendRecords(context, promise: promise)
        } catch {
            self.fail(error, context)
        }
    }

    private func encryptPending() throws(TLSFailure) {
        // After close_notify even an empty write fails.
        guard !self.pendingPlaintext.isEmpty else { return }
        var pieces: [ByteBuffer] = []
        swap(&pieces, &self.pendingPlaintext)
        if pieces.count == 1 {
            let piece = pieces[0]
            return try self.connection.write(piece.readableBytesSpan)
        }
        var batch = ByteBuffer()
        for piece in pieces {
            if piece.readableBytes < Self.plaintextBufferLimit {
                batch.writeImmutableBuffer(piece)
            } else {
                try self.connection.write(batch.readableBytesSpan)
                batch.clear()
                try self.connection.write(piece.readableBytesSpan)
            }
        }
        try self.connection.write(batch.readableBytesSpan)
    }

    /// Copies the pending records out of the engine's buffer.
    private func sendRecords(_ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        guard self.connection.pendingCiphertext > 0 else {
            promise?.succeed(())
            return
        }
        var records = context.channel.allocator.buffer(capacity: self.connection.pendingCiphertext)
        _ = self.connection.withCiphertext { (bytes: RawSpan) -> Int in records.writeBytes(bytes) }
        context.writeAndFlush(self.wrapOutboundOut(records), promise: promise)
    }

    private func dropPending(_ error: any Error) {
        self.pendingPlaintext = []
        let promise = self.pendingPromise
        self.pendingPromise = nil
        promise?.fail(error)
    }

    /// Sends close_notify after everything written. `.output` does only this: the transport's output stays open, because
    /// TLS itself may still have to answer the peer.
    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .open = self.phase, mode != .input {
            self.flush(context: context)
            self.connection.closeOutput()
            self.sendRecords(context, promise: nil)
        }
        switch mode {
        case .output: promise?.succeed(())
        case .input: context.close(mode: .input, promise: promise)
        case .all:
            self.phase = .ended
            self.dropPending(ChannelError.ioOnClosedChannel)
            context.close(mode: .all, promise: promise)
        }
    }
}
