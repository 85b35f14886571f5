import ByteKernels
import NIOCore

/// The side of a connection's pipeline that sees the bytes as they are on the wire: below the HTTP codec, above TLS.
///
/// It counts them, holds heads to the letter before the codec reads them, and keeps back what follows a 101: that is no
/// HTTP any more.
final class WireHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    private enum Mode {
        /// No request is out: nothing may come.
        case idle
        case head(HeadScanner, informational: Int)
        case content
        /// Behind a 101.
        case raw
        case refused
    }

    private let limits: MessageLimits
    private var mode = Mode.idle
    private(set) var context: ChannelHandlerContext?
    private(set) var bytesSent: Int64 = 0
    /// Of the response under way.
    private(set) var headBytes: Int64 = 0
    private(set) var bodyBytes: Int64 = 0
    /// Body bytes since the last that carried content.
    private var framingRun = 0
    /// The last four bytes.
    private var tail: UInt32 = 0
    /// What came behind a 101 before anybody was there to take it.
    private(set) var beyond = ByteBuffer()
    private var taker: (any RawBytesTaker)?

    /// Whether somebody has the raw bytes.
    var isTaken: Bool { self.taker != nil }

    init(limits: MessageLimits) {
        self.limits = limits
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.taker = nil
    }

    /// A request goes out: a response may come.
    func beginExchange() {
        self.mode = .head(HeadScanner(limit: self.limits.headBytes), informational: 0)
        self.headBytes = 0
        self.bodyBytes = 0
        self.framingRun = 0
        self.tail = 0
    }

    /// The response has ended.
    /// - Returns: whether its last byte is also the last that came, so that the connection holds nothing of a next one.
    func endExchange(_ framing: ResponseFraming) -> Bool {
        guard case .content = self.mode else { return false }
        self.mode = .idle
        switch framing {
        case .none: return self.bodyBytes == 0
        case .length(let length): return self.bodyBytes == length
        // What the codec reads behind the last chunk is silently kept until it is a whole head, which it refuses. So
        // after a read that ends in an empty line there is nothing of the kind.
        case .chunked: return self.tail == 0x0D0A_0D0A
        case .untilClose: return false
        }
    }

    func contentDelivered() {
        self.framingRun = 0
    }

    /// The connection is no HTTP any more: from now on `taker` has the bytes, past the codec.
    func becomeRaw(_ taker: any RawBytesTaker) -> ByteBuffer {
        self.mode = .raw
        self.taker = taker
        defer { self.beyond = ByteBuffer() }
        return self.beyond
    }

    // MARK: Received

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = self.unwrapInboundIn(data)
        guard bytes.readableBytes > 0 else { return }
        do throws(ResponseViolation) {
            try self.take(bytes, context)
        } catch {
            self.mode = .refused
            context.fireErrorCaught(error)
        }
    }

    private func take(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) throws(ResponseViolation) {
        switch self.mode {
        case .idle: throw .unsolicited
        case .head(let scanner, let informational): try self.takeHead(bytes, scanner, informational, context)
        case .content: try self.takeBody(bytes, count: bytes.readableBytes, context)
        case .raw: self.takeRaw(bytes)
        case .refused: break
        }
    }

    private func takeHead(
        _ bytes: ByteBuffer, _ scanner: HeadScanner, _ informational: Int, _ context: ChannelHandlerContext
    ) throws(ResponseViolation) {
        var scanner = scanner
        var informational = informational
        var start = 0
        while let found = try scanner.scan(bytes.readableBytesSpan, from: start) {
            self.headBytes += Int64(found.end - start)
            start = found.end
            if found.status == 101 { return self.splitAtUpgrade(bytes, at: start, context) }
            guard (100..<200).contains(found.status) else {
                self.mode = .content
                return try self.takeBody(bytes, count: bytes.readableBytes - start, context)
            }
            informational += 1
            guard informational <= self.limits.informationalHeads else { throw .tooManyInformationalHeads }
        }
        self.headBytes += Int64(bytes.readableBytes - start)
        self.mode = .head(scanner, informational: informational)
        context.fireChannelRead(self.wrapInboundOut(bytes))
    }

    private func takeBody(
        _ bytes: ByteBuffer, count: Int, _ context: ChannelHandlerContext
    ) throws(ResponseViolation) {
        self.bodyBytes += Int64(count)
        self.framingRun += count
        self.remember(bytes.readableBytesSpan)
        context.fireChannelRead(self.wrapInboundOut(bytes))
        if self.framingRun > self.limits.framingBytes { throw .framingWithoutContent }
    }

    private func remember(_ bytes: RawSpan) {
        for offset in max(0, bytes.byteCount - 4)..<bytes.byteCount {
            self.tail = self.tail << 8 | UInt32(bytes[byte: offset])
        }
    }

    private func splitAtUpgrade(_ bytes: ByteBuffer, at end: Int, _ context: ChannelHandlerContext) {
        var bytes = bytes
        self.mode = .raw
        guard let head = bytes.readSlice(length: end) else { return }
        self.beyond = bytes
        context.fireChannelRead(self.wrapInboundOut(head))
    }

    private func takeRaw(_ bytes: ByteBuffer) {
        if let taker = self.taker {
            taker.rawBytesReceived(bytes)
        } else {
            self.beyond.writeImmutableBuffer(bytes)
        }
    }

    // MARK: Sent

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        self.bytesSent += Int64(self.unwrapOutboundIn(data).readableBytes)
        context.write(data, promise: promise)
    }

    // MARK: Ending

    func channelReadComplete(context: ChannelHandlerContext) {
        if let taker = self.taker { taker.rawReadCompleted() } else { context.fireChannelReadComplete() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let taker = self.taker, event as? ChannelEvent == .inputClosed {
            taker.rawInputClosed()
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let taker = self.taker { taker.rawErrorCaught(error) } else { context.fireErrorCaught(error) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        let taker = self.taker
        self.taker = nil
        taker?.rawConnectionEnded()
        context.fireChannelInactive()
    }
}
