import NIOCore
import WireText

/// Parses the responses of a connection from its bytes above TLS, and counts bytes in both directions.
///
/// Heads are parsed strictly; the framing of the content comes from `ClientConnection`. Bytes after a 101 are not HTTP and
/// are kept for the consumer that takes the connection over.
final class WireHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = IOData

    private enum Mode {
        /// No request was sent: received bytes are a violation.
        case idle
        case head(ResponseParser)
        case length(left: Int64)
        case chunks(ChunkReader)
        case trailers(TrailerParser)
        case untilClose
        /// The response has ended.
        case complete
        /// After a 101.
        case raw
        /// Received bytes are discarded.
        case stopped
    }

    private let limits: MessageLimits
    private var mode = Mode.idle
    /// Receives the parsed response; `nil` after the channel has ended.
    private var owner: ClientConnection?
    private(set) var context: ChannelHandlerContext?
    private(set) var bytesSent: Int64 = 0
    /// Of the current response.
    private(set) var headBytes: Int64 = 0
    private(set) var bodyBytes: Int64 = 0
    /// Whether bytes followed the end of the response.
    private var hasExcessBytes = false
    /// Bytes received after a 101 and before `becomeRaw`.
    private var bytesAfterUpgrade = ByteBuffer()
    private var rawConsumer: (any RawBytesConsumer)?

    /// Whether a consumer has taken the raw bytes.
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

    /// Call before the request is sent.
    func beginExchange(_ owner: ClientConnection) {
        self.owner = owner
        self.mode = .head(ResponseParser(limits: self.limits.ofHead))
        self.headBytes = 0
        self.bodyBytes = 0
        self.hasExcessBytes = false
    }

    /// - Returns: whether the response is complete and no byte followed it, so that the connection can be reused.
    func endExchange() -> Bool {
        guard case .complete = self.mode else { return false }
        self.mode = .idle
        return !self.hasExcessBytes
    }

    /// Discards what is received from now on, because the connection is closing.
    func stop() {
        if case .raw = self.mode { return }
        self.mode = .stopped
    }

    func becomeRaw(_ consumer: any RawBytesConsumer) -> ByteBuffer {
        self.mode = .raw
        self.rawConsumer = consumer
        defer { self.bytesAfterUpgrade = ByteBuffer() }
        return self.bytesAfterUpgrade
    }

    // MARK: Received

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = self.unwrapInboundIn(data)
        do throws(ResponseViolation) {
            while bytes.readableBytes > 0 { try self.parse(&bytes) }
        } catch {
            self.mode = .stopped
            context.fireErrorCaught(error)
        }
    }

    /// Consumes some or all of the bytes.
    private func parse(_ bytes: inout ByteBuffer) throws(ResponseViolation) {
        switch self.mode {
        case .idle: throw .unsolicited
        case .head(let parser): try self.parseHead(&bytes, parser)
        case .length(let left): self.readContent(&bytes, left)
        case .chunks(let reader): try self.parseChunks(&bytes, reader)
        case .trailers(let parser): try self.parseTrailers(&bytes, parser)
        case .untilClose: self.readContent(&bytes, .max)
        case .complete:
            self.hasExcessBytes = true
            bytes.clear()
        case .raw: self.forwardRaw(&bytes)
        case .stopped: bytes.clear()
        }
    }

    private func parseHead(_ bytes: inout ByteBuffer, _ parser: ResponseParser) throws(ResponseViolation) {
        var parser = parser
        // Gives up its copy, which would be copied again.
        self.mode = .stopped
        var consumed = 0
        let head: ResponseHead?
        do throws(HeadViolation) {
            head = try parser.parse(bytes.readableBytesSpan, consumed: &consumed)
        } catch {
            throw .head(error)
        }
        self.headBytes += Int64(consumed)
        bytes.moveReaderIndex(forwardBy: consumed)
        guard let head else { return self.mode = .head(parser) }
        guard head.version == .http11 || head.version == .http10 else { throw .head(.malformedStartLine) }
        self.mode = head.status == 101 ? .raw : .head(parser)
        let framing = self.owner?.headReceived(head)
        if head.status == 101 {
            self.owner?.responseEnded([])
        } else if let framing, !head.isInterim {
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

    private func complete(_ trailers: [FieldLine]) {
        self.mode = .complete
        self.owner?.responseEnded(trailers)
    }

    private func readContent(_ bytes: inout ByteBuffer, _ left: Int64) {
        let count = Int(min(left, Int64(bytes.readableBytes)))
        guard let piece = bytes.readSlice(length: count) else { return }
        self.bodyBytes += Int64(count)
        if left != .max { self.mode = .length(left: left - Int64(count)) }
        self.owner?.contentReceived(piece)
        if case .length(left: 0) = self.mode { self.complete([]) }
    }

    private func parseChunks(_ bytes: inout ByteBuffer, _ reader: ChunkReader) throws(ResponseViolation) {
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
            self.mode = .trailers(TrailerParser(limits: self.limits.ofHead))
        case .content(let range):
            self.bodyBytes += Int64(range.upperBound)
            bytes.moveReaderIndex(forwardBy: range.lowerBound)
            if let piece = bytes.readSlice(length: range.count) { self.owner?.contentReceived(piece) }
        }
    }

    private func parseTrailers(_ bytes: inout ByteBuffer, _ parser: TrailerParser) throws(ResponseViolation) {
        var parser = parser
        self.mode = .stopped
        var consumed = 0
        let trailers: FieldLines?
        do throws(HeadViolation) {
            trailers = try parser.parse(bytes.readableBytesSpan, consumed: &consumed)
        } catch {
            throw .head(error)
        }
        self.bodyBytes += Int64(consumed)
        bytes.moveReaderIndex(forwardBy: consumed)
        guard let trailers else { return self.mode = .trailers(parser) }
        self.complete(trailers.all)
    }

    private func forwardRaw(_ bytes: inout ByteBuffer) {
        if let consumer = self.rawConsumer {
            consumer.rawBytesReceived(bytes)
        } else {
            self.bytesAfterUpgrade.writeImmutableBuffer(bytes)
        }
        bytes.clear()
    }

    private func inputEnded() {
        if case .untilClose = self.mode { self.complete([]) }
    }

    // MARK: Sent

    /// `ClientConnection` writes here directly: no handler is between the two.
    func write(_ bytes: ByteBuffer, _ promise: EventLoopPromise<Void>? = nil) {
        self.bytesSent += Int64(bytes.readableBytes)
        self.context?.write(self.wrapOutboundOut(.byteBuffer(bytes)), promise: promise)
    }

    func flush() { self.context?.flush() }

    // MARK: Ending

    func channelReadComplete(context: ChannelHandlerContext) {
        if let consumer = self.rawConsumer { consumer.rawReadCompleted() } else { context.fireChannelReadComplete() }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let consumer = self.rawConsumer, event as? ChannelEvent == .inputClosed {
            consumer.rawInputClosed()
        } else {
            if event as? ChannelEvent == .inputClosed { self.inputEnded() }
            context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if let consumer = self.rawConsumer { consumer.rawErrorCaught(error) } else { context.fireErrorCaught(error) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        let consumer = self.rawConsumer
        self.rawConsumer = nil
        consumer?.rawConnectionEnded()
        self.inputEnded()
        context.fireChannelInactive()
    }
}
