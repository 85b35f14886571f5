import ByteKernels
import HTTP2Engine
import SessionTasks
import StreamTransport
import WireText

/// One HTTP/2 connection to a server. It carries many exchanges at a time, each on a stream of its own.
///
/// Confined to its loop.
final class HTTP2ClientConnection: MultiplexedConnection {
    /// Output beyond this many bytes stays in the engine until the system has taken some.
    private static let outputWatermark = 256 << 10
    /// Most streams at a time, even if the server allows more: each may make the connection hold a window of content.
    /// Closed streams count until their responses are delivered.
    private static let streamLimit = 128
    /// After so long without input, a server may be gone without notice: a PING goes with the next request.
    private static let probeAfter = Duration.seconds(15)
    /// How long any answer to that PING may take.
    private static let probeTimeout = Duration.seconds(10)

    let pool: ConnectionPool
    let key: PoolKey
    private(set) var idleSince: MonotonicInstant
    private let transport: any Transport
    /// `transport`, if it is one of TLS: asked for each request.
    private let secureTransport: SecureTransport?
    private let engine: HTTP2Connection
    private var windows = ReceiveWindows()
    private(set) var metadata: ConnectionMetadata
    /// Those that carry an exchange.
    private var streams: [HTTP2StreamID: HTTP2ClientStream] = [:]
    /// No further requests: the server said GOAWAY, or the pool does not want the connection any more.
    private var isRetired = false
    private var isClosed = false
    /// The server's settings have come.
    private var hasSettings = false
    private var isTurnEndRequested = false
    private var trafficClass = TrafficClass.standard
    /// The code of the server's GOAWAY, unless it was NO_ERROR.
    private var goAwayCode: HTTP2ErrorCode?
    /// When the last bytes were received.
    private(set) var lastInput: MonotonicInstant
    private let settingsTimer = LoopTimer()
    private let probeTimer = LoopTimer()

    /// - Parameter transport: paused, and without a consumer.
    init(
        _ transport: any Transport, _ metadata: ConnectionMetadata, key: PoolKey, in pool: ConnectionPool
    ) throws(HTTP2Failure) {
        var settings = HTTP2Settings()
        settings.streamWindow = Int32(ReceiveWindows.initialStreamWindow)
        settings.connectionWindow = Int32(ReceiveWindows.initialConnectionWindow)
        settings.maximumIdleBytes = 2 * ReceiveWindows.largestConnectionWindow
        settings.maximumHeaderListSize = pool.settings.limits.headBytes
        self.engine = try HTTP2Connection(.client, settings: settings)
        self.transport = transport
        self.secureTransport = transport as? SecureTransport
        self.metadata = metadata
        self.metadata.networkProtocol = "h2"
        self.key = key
        self.pool = pool
        self.idleSince = pool.loop.now
        self.lastInput = pool.loop.now
        transport.consumer = self
        transport.resumeReading()
        self.loop.arm(self.settingsTimer, after: pool.settings.settingsTimeout, target: self)
        self.requestFlush()
    }

    var loop: Loop { self.pool.loop }
    var isIdle: Bool { self.streams.isEmpty }

    /// Whether one more request can be sent now.
    var acceptsStream: Bool {
        guard !self.isRetired, self.isSecured, self.hasSettings, self.engine.acceptsRequests else { return false }
        return !self.engine.isAtLimit && self.streams.count < Self.streamLimit
    }

    var isBlocked: Bool { self.engine.maximumPeerStreams == 0 && self.engine.acceptsRequests }

    /// Until the handshake is over, no request but the first may be sent: it would be early data.
    var isSecured: Bool { self.secureTransport?.isSecured ?? true }
    /// Before its settings come, a server may allow a single stream; excess ones can cost the connection (RFC 9113
    /// §5.1.2).
    var hasStarted: Bool { self.isSecured && self.hasSettings }
    var isStarting: Bool { !self.isRetired && !self.hasStarted }

    // MARK: Requests

    /// Sends the request of `exchange` on a stream of its own.
    func run(_ exchange: Exchange) {
        let stream = HTTP2ClientStream(exchange, on: self)
        let metadata = self.metadata
        self.metadata.isReused = true
        self.metadata.sendsEarlyData = false
        self.metadata.timings = ConnectTimings()
        stream.begin(metadata)
        guard !exchange.isEnded, case .running = exchange.phase else { return }
        self.probeIfSilent()
        self.setTrafficClass(exchange.request.trafficClass)
        let head = HTTP2FieldBlock(exchange.plan.head, to: exchange.request.origin, priority: exchange.priority)
        do throws(HTTP2UsageError) {
            let id = try self.engine.request(head, endsOutput: exchange.progress.sending == .done)
            self.streams[id] = stream
            stream.requestSent(id, headBytes: head.bytes.count)
        } catch {
            self.requestRefused(error, exchange)
        }
        self.requestFlush()
    }

    /// Finds out within `probeTimeout` whether the server is still there; the timeout of a request may be much longer.
    func probeIfSilent() {
        let isSilent = self.lastInput.advanced(by: Self.probeAfter) <= self.loop.now
        guard isSilent, self.engine.openStreams == 0 else { return }
        self.engine.ping(0)
        self.loop.arm(self.probeTimer, after: Self.probeTimeout, target: self)
        self.requestFlush()
    }

    private func requestRefused(_ error: HTTP2UsageError, _ exchange: Exchange) {
        exchange.phase = .created
        switch error {
        case .closing, .streamNumbersUsedUp, .noSuchStream:
            self.retire()
            self.pool.repeatExchange(exchange)
        case .headTooLarge: exchange.fail(.request(.headTooLarge))
        case .outOfMemory: exchange.fail(.http2(.outOfMemory))
        }
        self.closeIfUnused()
    }

    private func setTrafficClass(_ wanted: TrafficClass) {
        guard wanted != self.trafficClass else { return }
        self.trafficClass = wanted
        self.transport.setTrafficClass(wanted, on: self.loop)
    }

    // MARK: Verbs of streams

    /// - Returns: whether the stream still takes bytes.
    func send(_ stream: HTTP2StreamID, _ piece: RawSpan) -> Bool {
        self.requestFlush()
        return (try? self.engine.send(stream, piece)) != nil
    }

    func endOutput(_ stream: HTTP2StreamID) {
        try? self.engine.endOutput(stream)
        self.requestFlush()
    }

    /// The consumer has taken `count` bytes of the stream's content.
    func consume(_ stream: HTTP2StreamID, _ count: Int) {
        self.engine.consume(stream, count)
        let growth = self.windows.consumed(count, of: stream)
        if let size = growth.streamWindow { self.engine.setWindow(of: stream, to: Int32(size)) }
        if let size = growth.connectionWindow { self.engine.setConnectionWindow(to: Int32(size)) }
        self.requestFlush()
    }

    /// Ends a stream without its exchange. RST_STREAM may wait in the engine as long as the transport takes nothing.
    func reset(_ stream: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        self.engine.reset(stream, code)
        self.remove(stream)
        self.requestFlush()
    }

    /// The stream was closed before its exchange left.
    func removeClosed(_ stream: HTTP2StreamID) {
        self.remove(stream)
        self.streamEnded()
    }

    /// The stream carries no exchange any more, and holds no content.
    func remove(_ stream: HTTP2StreamID) {
        self.windows.closed(stream)
        if self.streams.removeValue(forKey: stream) != nil, self.streams.isEmpty { self.idleSince = self.loop.now }
    }

    /// Whether the whole request is in frames.
    func isOutputFramed(of stream: HTTP2StreamID) -> Bool { self.engine.isOutputFramed(of: stream) }

    /// `Transport.writtenBytes`.
    var writtenBytes: UInt64 { self.transport.writtenBytes }

    /// Bytes of the stream's request that the server has not acknowledged.
    /// - Parameter framesEnd: `writtenBytes` after the latest frame of the stream.
    func unsentBytes(of stream: HTTP2StreamID, framesEnd: UInt64) -> Int {
        let acknowledged = Int(self.transport.writtenBytes) - self.transport.unacknowledgedBytes
        let arrived = max(0, min(Int(self.transport.sentBytes), Int(framesEnd), acknowledged))
        return self.engine.queuedBytes(of: stream) + Int(framesEnd) - arrived
    }

    func updatePriority(of stream: HTTP2StreamID, to urgency: RequestUrgency) {
        self.engine.updatePriority(of: stream, to: urgency.fieldValue)
        self.requestFlush()
    }

    // MARK: Ending

    /// Sends no further request on the connection. It is closed when its last stream has ended.
    func retire() {
        guard !self.isRetired else { return }
        self.isRetired = true
        self.pool.connectionRetired(self)
        self.closeIfUnused()
    }

    /// Closes without notifying the pool, which has already removed the connection.
    func discard() {
        self.isRetired = true
        self.closeIfUnused()
    }

    private func closeIfUnused() {
        guard self.isRetired, self.streams.isEmpty, !self.isClosed else { return }
        self.engine.goAway()
        self.closeTransport()
    }

    private func closeTransport() {
        guard !self.isClosed else { return }
        self.engine.write { self.transport.write($0) < Self.outputWatermark }
        self.isClosed = true
        self.loop.disarm(self.settingsTimer)
        self.loop.disarm(self.probeTimer)
        self.transport.consumer = nil
        self.transport.close(linger: .zero)
    }

    /// The connection is over: its streams end with it.
    /// - Parameter error: of HTTP/2; `nil` if the transport ended.
    private func end(_ error: HTTP2Error?, cause: TransportFailure?) {
        guard !self.isClosed else { return }
        self.closeTransport()
        let streams = self.streams.sorted { $0.key < $1.key }.map(\.value)
        self.streams = [:]
        self.retire()
        let error = error ?? self.goAwayCode.map { HTTP2Error($0) }
        self.pool.repeatExchanges(streams.compactMap { $0.connectionEnded(error, cause: cause) }, on: self.key)
    }
}

// MARK: Input and output

extension HTTP2ClientConnection: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        let now = self.loop.now
        self.engine.timePassed(self.lastInput.duration(to: now))
        self.lastInput = now
        self.loop.disarm(self.probeTimer)
        self.loop.spend(bytes.byteCount)
        var offset = 0
        while let event = self.engine.nextEvent(in: bytes.bytes, from: &offset) {
            if case .data(let id, let range) = event {
                self.streams[id]?.contentReceived(bytes.bytes.extracting(range))
            } else {
                self.handle(event)
            }
        }
        self.requestFlush()
        return bytes.byteCount
    }

    private func handle(_ event: HTTP2Event) {
        switch event {
        case .head(let id, let block, let isLast):
            self.streams[id]?.headReceived(block, isInformational: false)
            if isLast { self.streams[id]?.inputEnded([]) }
        case .informational(let id, let block): self.streams[id]?.headReceived(block, isInformational: true)
        case .trailers(let id, let block): self.streams[id]?.inputEnded(block.fieldLines.all)
        case .inputEnded(let id): self.streams[id]?.inputEnded([])
        case .headTooLarge(let id):
            self.streams[id]?.fail(.violation(.head(.tooLong(limit: self.engine.settings.maximumHeaderListSize))))
        case .malformed(let id): self.streams[id]?.fail(.violation(.message))
        case .outputDrained(let id): self.streams[id]?.outputDrained()
        case .closed(let id, let code): self.streamClosed(id, code)
        case .settings:
            self.loop.disarm(self.settingsTimer)
            self.hasSettings = true
            self.pool.streamLimitReceived(self)
        case .goAway(let lastStream, let code):
            if code != .noError { self.goAwayCode = code }
            self.serverEnds(after: lastStream)
        case .failed(let failure): self.end(HTTP2Error(failure), cause: nil)
        case .data, .pong: break
        }
    }

    private func streamClosed(_ id: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        // A request that was sent before the server lowered its limit is refused for that alone.
        let refusal: Repetitions.Unprocessed = self.engine.isAtLimit ? .beyondLimit : .refused
        self.streams[id]?.closed(code == .refusedStream ? self.refusalCode : code, refusal: refusal)
        self.streamEnded()
    }

    /// One more request can be sent, or the connection can be closed.
    private func streamEnded() {
        self.closeIfUnused()
        if !self.isRetired { self.pool.streamCapacityChanged(self) }
    }

    /// The server processes no streams after `last`. Their requests are sent again, before those that came later.
    private func serverEnds(after last: HTTP2StreamID) {
        self.isRetired = true
        let unprocessed = self.streams.filter { $0.key > last }.values
        let moved: [Exchange] =
            self.refusalCode != .refusedStream
            ? [] : unprocessed.compactMap { $0.moved(last > 0 ? .afterOthers : .refused) }
        self.pool.connectionRetired(self, moving: moved)
        self.closeIfUnused()
    }

    /// A request that the server did not process is sent again whatever the code of its GOAWAY (RFC 9113 §6.8), unless the
    /// code demands fewer requests or another protocol.
    private var refusalCode: HTTP2ErrorCode {
        guard let code = self.goAwayCode, code == .enhanceYourCalm || code == .http11Required else {
            return .refusedStream
        }
        return code
    }

    func inputClosed() {
        self.end(nil, cause: nil)
    }

    func outputProgressed() {
        // In another turn, so that a fast peer does not starve the loop's other connections.
        if self.engine.wantsToWrite { self.loop.inNextTurn(self) }
    }

    func transportEnded(_ end: TransportEnd) {
        self.end(nil, cause: end.transportFailure)
    }

    fileprivate func requestFlush() {
        guard !self.isTurnEndRequested, !self.isClosed else { return }
        self.isTurnEndRequested = true
        self.loop.atTurnEnd(self)
    }
}

extension HTTP2ClientConnection: TurnEndTarget {
    /// All frames of a turn are written in one call.
    func turnEnded() {
        self.isTurnEndRequested = false
        self.flush()
    }

    func nextTurnBegan() {
        self.flush()
    }

    private func flush() {
        guard !self.isClosed else { return }
        if self.transport.queuedBytes < Self.outputWatermark {
            self.engine.write { self.transport.write($0) < Self.outputWatermark }
        }
        if self.transport.queuedBytes >= Self.outputWatermark { self.transport.awaitProgress() }
        // Frames that were written end streams.
        var offset = 0
        while let event = self.engine.nextEvent(in: RawSpan(), from: &offset) { self.handle(event) }
        self.closeIfUnused()
    }
}

extension HTTP2ClientConnection: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        if timer === self.probeTimer {
            self.end(nil, cause: .peerUnresponsive)
        } else {
            self.end(.settingsTimeout, cause: nil)
        }
    }
}

extension Transport {
    /// Marks the packets of the connection. Only a hint: if the system refuses the option, requests are sent anyway.
    func setTrafficClass(_ wanted: TrafficClass, on loop: Loop) {
        guard let socket = (self as? SecureTransport)?.lower.socket ?? self.socket else { return }
        var options = ConnectionAttempt.socketOptions
        options.trafficClass = wanted
        _ = loop.system.apply(options, to: socket.descriptor)
    }
}
