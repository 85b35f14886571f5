import NIOCore

/// The side of a connection that sees the bytes as they are on the wire, above TLS.
///
/// It reads responses from them: heads to the letter, then content as far as the connection says that there is some. It
/// counts them, and keeps back what follows a 101: that is no HTTP any more.
final class WireHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = IOData

    private enum Mode {
        /// No request is out: nothing may come.
        case idle
        case head(HeadScanner)
        case length(left: Int64)
        case chunks(ChunkReader)
        case trailers(HeadScanner)
        case untilClose
        /// The response has ended.
        case complete
        /// Behind a 101.
        case raw
        /// Whatever comes is of no interest any more.
        case stopped
    }

    private let limits: MessageLimits
    private var mode = Mode.idle
    /// Who is told what is read; until the channel ends.
    private var owner: ClientConnection?
    private(set) var context: ChannelHandlerContext?
    private(set) var bytesSent: Int64 = 0
    /// Of the response under way.
    private(set) var headBytes: Int64 = 0
    private(set) var bodyBytes: Int64 = 0
    /// What has come of a head, or of trailers, that are not whole.
    private var partialHead = ByteBuffer()
    /// Whether bytes came behind the end of the response.
    private var hasExcess = false
    /// What came behind a 101 before anybody was there to take it.
    private(set) var beyond = ByteBuffer()
    private var rawConsumer: (any RawBytesConsumer)?

    /// Whether somebody has the raw bytes.
    var isRaw: Bool { self.rawConsumer != nil }

    init(limits: MessageLimits) {
        self.limits = limits
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        self.owner = nil
        self.rawConsumer = nil
    }

    /// A request goes out: a response may come.
    func beginExchange(_ owner: ClientConnection) {
        self.owner = owner
        self.mode = .head(HeadScanner(limit: self.limits.headBytes))
        self.headBytes = 0
        self.bodyBytes = 0
        self.hasExcess = false
    }

    /// The response has ended.
    /// - Returns: whether its last byte is also the last that came, so that the connection holds nothing of a next one.
    func endExchange() -> Bool {
        guard case .complete = self.mode else { return false }
        self.mode = .idle
        return !self.hasExcess
    }

    /// The connection closes: nothing more is read.
    func stop() {
        if case .raw = self.mode { return }
        self.mode = .stopped
        self.partialHead = ByteBuffer()
    }

    /// The connection is no HTTP any more: from now on `taker` has the bytes.
    func becomeRaw(_ taker: any RawBytesConsumer) -> ByteBuffer {
        self.mode = .raw
        self.rawConsumer = taker
        defer { self.beyond = ByteBuffer() }
        return self.beyond
    }

    // MARK: Received

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        do throws(ResponseViolation) {
            while bytes.readableBytes > 0 { try self.take(&bytes) }
        } catch {
            self.mode = .stopped
            context.fireErrorCaught(error)
        }
    }

    /// Takes some of the bytes, or all.
    private func take(_ bytes: inout ByteBuffer) throws(ResponseViolation) {
        switch self.mode {
        case .idle: throw .unsolicited
        case .head(let scanner): try self.takeHead(&bytes, scanner)
        case .length(let left): self.takeContent(&bytes, left)
        case .chunks(let reader): try self.takeChunks(&bytes, reader)
        case .trailers(let scanner): try self.takeTrailers(&bytes, scanner)
        case .untilClose: self.takeContent(&bytes, .max)
        case .complete:
            self.hasExcess = true
            bytes.clear()
        case .raw: self.takeRaw(&bytes)
        case .stopped: bytes.clear()
        }
    }

    private func takeHead(_ bytes: inout ByteBuffer, _ scanner: HeadScanner) throws(ResponseViolation) {
        var scanner = scanner
        guard let found = try scanner.scan(bytes.readableBytesSpan, from: 0) else {
            self.headBytes += Int64(bytes.readableBytes)
            self.partialHead.writeBuffer(&bytes)
            return self.mode = .head(scanner)
        }
        self.headBytes += Int64(found.end)
        let head = try self.lines(&bytes, found.end).head(limit: self.limits.fieldCount)
        self.mode = head.status == 101 ? .raw : .head(scanner)
        let framing = self.owner?.headReceived(head)
        if head.status == 101 {
            self.owner?.responseEnded([])
        } else if let framing, !head.isInformational {
            self.begin(framing)
        }
    }

    private func begin(_ framing: ResponseFraming) {
        switch framing {
        case .none, .length(0): self.complete([])
        case .length(let length): self.mode = .length(left: length)
        case .chunked: self.mode = .chunks(ChunkReader(limit: self.limits.framingBytes))
        case .untilClose: self.mode = .untilClose
        }
    }

    private func complete(_ trailers: [HeaderField]) {
        self.mode = .complete
        self.owner?.responseEnded(trailers)
    }

    private func takeContent(_ bytes: inout ByteBuffer, _ left: Int64) {
        let count = Int(min(left, Int64(bytes.readableBytes)))
        guard let piece = bytes.readSlice(length: count) else { return }
        self.bodyBytes += Int64(count)
        if left != .max { self.mode = .length(left: left - Int64(count)) }
        self.owner?.contentReceived(piece)
        if case .length(left: 0) = self.mode { self.complete([]) }
    }

    private func takeChunks(_ bytes: inout ByteBuffer, _ reader: ChunkReader) throws(ResponseViolation) {
        var reader = reader
        let step = try reader.next(bytes.readableBytesSpan, from: 0)
        self.mode = .chunks(reader)
        switch step {
        case .more:
            self.bodyBytes += Int64(bytes.readableBytes)
            bytes.clear()
        case .trailers(let start):
            self.bodyBytes += Int64(start)
            bytes.moveReaderIndex(forwardBy: start)
            self.mode = .trailers(HeadScanner(trailersWithin: self.limits.headBytes))
        case .content(let range):
            self.bodyBytes += Int64(range.upperBound)
            bytes.moveReaderIndex(forwardBy: range.lowerBound)
            if let piece = bytes.readSlice(length: range.count) { self.owner?.contentReceived(piece) }
        }
    }

    private func takeTrailers(_ bytes: inout ByteBuffer, _ scanner: HeadScanner) throws(ResponseViolation) {
        var scanner = scanner
        guard let found = try scanner.scan(bytes.readableBytesSpan, from: 0) else {
            self.bodyBytes += Int64(bytes.readableBytes)
            self.partialHead.writeBuffer(&bytes)
            return self.mode = .trailers(scanner)
        }
        self.bodyBytes += Int64(found.end)
        self.complete(try self.lines(&bytes, found.end).fields(limit: self.limits.fieldCount))
    }

    /// What the next `count` bytes end.
    private func lines(_ bytes: inout ByteBuffer, _ count: Int) -> HeaderLines {
        let end = bytes.readSlice(length: count) ?? ByteBuffer()
        guard self.partialHead.readableBytes > 0 else { return HeaderLines(end) }
        self.partialHead.writeImmutableBuffer(end)
        defer { self.partialHead = ByteBuffer() }
        return HeaderLines(self.partialHead)
    }

    private func takeRaw(_ bytes: inout ByteBuffer) {
        if let taker = self.rawConsumer {
            taker.rawBytesReceived(bytes)
        } else {
            self.beyond.writeImmutableBuffer(bytes)
        }
        bytes.clear()
    }

    /// The server sends no more.
    private func inputEnded() {
        if case .untilClose = self.mode { self.complete([]) }
    }

    // MARK: Sent

    /// Writes at once what the connection above has to send: there is nobody between.
    func write(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>? = nil) {
        self.bytesSent += Int64(bytes.readableBytes)
        self.context?.write(self.wrapOutboundOut(.byteBuffer(bytes)), promise: promise)
    }

    func flush() { self.context?.flush() }

    // MARK: Ending

    func channelReadComplete(context: ChannelHandlerContext) {
        if let taker = self.rawConsumer { taker.rawReadCompleted() } else { context.fireChannelReadComplete() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let taker = self.rawConsumer, event as? ChannelEvent == .inputClosed {
            taker.rawInputClosed()
        } else {
            if event as? ChannelEvent == .inputClosed { self.inputEnded() }
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let taker = self.rawConsumer { taker.rawErrorCaught(error) } else { context.fireErrorCaught(error) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        let taker = self.rawConsumer
        self.rawConsumer = nil
        taker?.rawConnectionEnded()
        self.inputEnded()
        context.fireChannelInactive()
    }
}
