import NIOCore
import TLSEngine

extension SecureHandler {
    /// Pieces from this size on are encrypted where they are; smaller ones are put together first, so that a head and a
    /// short body leave in one record.
    private static var gatherLimit: Int { 16 << 10 }

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard self.phase != .ended, case .byteBuffer(let bytes) = self.unwrapOutboundIn(data) else {
            // A file's region cannot be encrypted without reading it: that is its owner's work.
            promise?.fail(self.phase == .ended ? ChannelError.ioOnClosedChannel : ChannelError.operationUnsupported)
            return
        }
        self.pending.append(bytes)
        guard let promise else { return }
        if let earlier = self.pendingPromise {
            earlier.futureResult.cascade(to: promise)
        } else {
            self.pendingPromise = promise
        }
    }

    package func flush(context: ChannelHandlerContext) {
        guard case .open = self.phase else {
            self.owesFlush = true
            return
        }
        self.owesFlush = false
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
        // Nothing may be written behind a close_notify, not even nothing.
        guard !self.pending.isEmpty else { return }
        var pieces: [ByteBuffer] = []
        swap(&pieces, &self.pending)
        if pieces.count == 1 {
            let piece = pieces[0]
            return try self.connection.write(piece.readableBytesSpan)
        }
        var batch = ByteBuffer()
        for piece in pieces {
            if piece.readableBytes < Self.gatherLimit {
                batch.writeImmutableBuffer(piece)
            } else {
                try self.connection.write(batch.readableBytesSpan)
                batch.clear()
                try self.connection.write(piece.readableBytesSpan)
            }
        }
        try self.connection.write(batch.readableBytesSpan)
    }

    /// Takes what the engine wants sent. It is taken at once, because the buffer belongs to all handlers of the loop.
    func sendRecords(_ context: ChannelHandlerContext, promise: EventLoopPromise<Void>?) {
        guard self.connection.pendingCiphertext > 0 else {
            promise?.succeed(())
            return
        }
        var records = context.channel.allocator.buffer(capacity: self.connection.pendingCiphertext)
        _ = self.connection.withCiphertext { (bytes: RawSpan) -> Int in records.writeBytes(bytes) }
        context.writeAndFlush(self.wrapOutboundOut(records), promise: promise)
    }

    func dropPending(_ error: any Error) {
        self.pending = []
        let promise = self.pendingPromise
        self.pendingPromise = nil
        promise?.fail(error)
    }

    /// Says close_notify first, behind everything written. Of `.output` that is all: the transport below stays whole,
    /// since TLS itself may still have to answer the peer.
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
