import ByteKernels
import GatewayConfiguration
import SessionTasks
import StreamTransport
import WebSocketProtocol

/// One side of a tunnel: forwards what its task receives to the other side's task, and performs actions on its own.
final class TunnelEnd {
    let side: TunnelSide
    let endpoint: RelayEndpoint
    private let watermarks: BufferWatermarks
    /// Framing between a stream and a WebSocket; `nil` for plain binary messages. Each end uses one direction.
    private var framing: TunnelFraming?
    /// Destination of this side's input. Constant, so that it is cheap to read on the hot path.
    private let target: RelayEndpoint
    /// Strong references that keep the tunnel alive until it ends.
    private var tunnel: Tunnel?
    private var other: TunnelEnd?
    /// Whether input of this side is still forwarded, as the machine decided.
    private var relays = true
    private var watchesEndMark = false
    private var endMark = EndMarkDetector()
    private var isPausedForOtherSide = false
    /// Number of reads, wrapping.
    private var reads: UInt8 = 0
    /// The added latency of bytes queued on this side is being measured.
    private var isMeasuringLatency = false

    init(_ side: TunnelSide, _ endpoint: RelayEndpoint, to target: RelayEndpoint, settings: TunnelSettings) {
        self.side = side
        self.endpoint = endpoint
        self.target = target
        self.watermarks = settings.buffer
    }

    var task: any RelayTask { self.endpoint.task }

    func join(_ other: TunnelEnd, in tunnel: Tunnel, settings: TunnelSettings) {
        self.other = other
        self.tunnel = tunnel
        switch (self.endpoint, other.endpoint) {
        case (.stream, .webSocket), (.webSocket, .stream):
            self.framing = TunnelFraming.needed(by: settings)
        case (.webSocket(let task), .webSocket(let others)):
            // Frames are forwarded unchanged only between opposite roles: otherwise the masking would be wrong.
            guard task.role != others.role else { break }
            if task.mayForwardFrames, others.mayForwardFrames { task.startForwarding(to: self) }
        case (.stream, .stream):
            break
        }
        let becomesMessages = if case (.stream, .webSocket) = (self.endpoint, other.endpoint) { true } else { false }
        let limit = settings.buffer.readLimit(for: becomesMessages ? settings.framing : nil)
        // One read may become one message, which is compressed in one step.
        self.task.setReadLimit(other.task.compresses ? min(limit, WebSocketTask.compressedPiece) : limit)
    }

    func start() {
        switch self.endpoint {
        case .stream(let task): task.attach(self)
        case .webSocket(let task): task.attach(self)
        }
        self.task.resumeReading()
    }

    func follow(_ machine: borrowing TunnelMachine) {
        self.relays = machine.relays(from: self.side)
        self.watchesEndMark = machine.watchesEndMark(from: self.side)
        guard self.isPausedForOtherSide, !self.relays else { return }
        // Discarded input needs no reader.
        self.isPausedForOtherSide = false
        self.task.endStall()
    }

    func leave() {
        self.relays = false
        self.stopMeasuring()
        self.tunnel = nil
        self.other = nil
    }

    // MARK: Forwarding

    /// Input was forwarded to the other side.
    /// - Parameters:
    ///   - queued: bytes queued there now.
    ///   - readAt: time of the read, if it is measured.
    private func didForward(queued: Int, _ readAt: MonotonicInstant?) {
        if queued > self.watermarks.high { self.pauseForOtherSide() }
        if let readAt, let other = self.other { self.forwarded(readAt, to: other) }
    }

    private func pauseForOtherSide() {
        guard !self.isPausedForOtherSide else { return }
        self.isPausedForOtherSide = true
        self.task.beginStall()
        self.target.task.awaitProgress()
    }

    /// The other side's queue is below its low watermark.
    func resumeReading() {
        guard self.isPausedForOtherSide else { return }
        self.isPausedForOtherSide = false
        self.task.endStall()
    }

    /// - Parameter queued: bytes queued on the other side, if any were forwarded.
    /// - Returns: number of bytes used.
    private func forward(_ bytes: RawSpan, by task: WebSocketTask, queued: inout Int) -> Int {
        guard let framing = self.framing else {
            queued = task.sendFrame(.binary, startsMessage: true, endsMessage: true, bytes)
            return bytes.byteCount
        }
        var offset = 0
        while !task.loop.budgetIsSpent {
            let start = offset
            let step = framing.toMessages.next(bytes, at: &offset)
            task.loop.spend(TurnBudget.frame + offset - start)
            switch step {
            case .exhausted: return offset
            case .chunk(let range, let mark):
                queued = task.sendFrame(mark, bytes.extracting(range))
            case .replacement(let made, let mark):
                queued = made.withRawSpan { task.sendFrame(mark, $0) }
            case .violation(let violation):
                self.tunnel?.violated(self.side, closeCode: violation.closeCode)
                return bytes.byteCount
            }
        }
        return offset
    }

    /// Flushes the framing at the end of the stream.
    /// - Returns: `false` if the stream ended inside a message.
    private func finishFraming() -> Bool {
        guard case .webSocket(let task) = self.target, let step = self.framing?.toMessages.finish() else {
            return true
        }
        switch step {
        case .replacement(let made, let mark):
            made.withRawSpan { _ = task.sendFrame(mark, $0) }
            return true
        case .violation(let violation):
            self.tunnel?.violated(self.side, closeCode: violation.closeCode)
            return false
        case .chunk, .exhausted:
            return true
        }
    }

    /// - Returns: bytes queued on the other side; 0 if none were forwarded.
    private func carry(_ mark: FramePosition, _ bytes: RawSpan, by task: StreamTask) -> Int {
        guard let framing = self.framing else { return task.enqueue(bytes) }
        var made: [UInt8] = []
        let chunk = ChunkPosition(mark.kind, startsMessage: mark.startsMessage, endsMessage: mark.endsMessage)
        switch framing.toStream.take(bytes, chunk, into: &made) {
        case .unchanged: return task.enqueue(bytes)
        case .rewritten: return made.isEmpty ? 0 : made.withRawSpan { task.enqueue($0) }
        case .violation(let violation):
            self.tunnel?.violated(self.side, closeCode: violation.closeCode)
            return 0
        }
    }

    // MARK: Actions

    func perform(_ action: SideAction) {
        switch self.endpoint {
        case .stream(let task): self.perform(action, task)
        case .webSocket(let task): self.perform(action, task)
        }
    }

    private func perform(_ action: SideAction, _ task: StreamTask) {
        switch action {
        case .finishOutput: task.finishOutput()
        case .close: task.close(linger: Tunnel.closingTimeout)
        case .reset: task.reset()
        case .sendEndMark, .sendClose, .sendEndMarkThenClose, .answerClose, .fail:
            assertionFailure("\(action) is not for a stream")
            task.reset()
        }
    }

    private func perform(_ action: SideAction, _ task: WebSocketTask) {
        switch action {
        case .sendEndMark: self.sendEndMark(task)
        case .sendClose(let signal): task.close(signal.closeCode, reason: signal.reason)
        case .sendEndMarkThenClose(let signal):
            self.sendEndMark(task)
            task.close(signal.closeCode, reason: signal.reason)
        case .answerClose(let signal): task.answerClose(signal.closeCode, reason: signal.reason)
        case .fail(let signal): task.fail(with: signal.closeCode ?? .internalError, reason: signal.reason)
        case .reset: task.reset()
        // Both Close frames are exchanged; the task ends the connection itself.
        case .close: break
        case .finishOutput:
            assertionFailure("a WebSocket has no half-close")
            task.reset()
        }
    }

    private func sendEndMark(_ task: WebSocketTask) {
        [UInt8]().withRawSpan { task.sendFrame(.binary, startsMessage: true, endsMessage: true, $0) }
    }
}

extension WebSocketTask {
    @inline(__always)
    fileprivate func sendFrame(_ mark: ChunkPosition, _ payload: RawSpan) -> Int {
        self.sendFrame(mark.kind, startsMessage: mark.startsMessage, endsMessage: mark.endsMessage, payload)
    }
}

extension CloseSignal {
    var closeCode: CloseCode? {
        self.code.map { CloseCode(rawValue: $0) }
    }
}

extension TunnelEnd: TransportConsumer {
    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        guard self.relays else { return bytes.byteCount }
        let readAt = self.readBegins()
        var used = bytes.byteCount
        var queued = 0
        switch self.target {
        case .stream(let task): queued = task.send(bytes.bytes)
        case .webSocket(let task): used = self.forward(bytes.bytes, by: task, queued: &queued)
        }
        self.didForward(queued: queued, readAt)
        return used
    }

    /// Bytes between two streams need no inspection and may be spliced.
    var spliceTarget: SocketConnection? {
        guard self.relays, case .stream(let task) = self.target else { return nil }
        return task.spliceDestination
    }

    func spliced(_ count: Int, queued: Int) {
        guard case .stream(let task) = self.target else { return }
        task.didSpliceOutput(count)
        self.didForward(queued: queued, nil)
    }

    func inputClosed() {
        guard self.finishFraming() else { return }
        self.tunnel?.inputFinished(self.side)
    }

    func outputProgressed() {
        if self.isMeasuringLatency { self.checkSent() }
        guard let other = self.other, self.endpoint.queuedBytes <= self.watermarks.low else { return }
        other.resumeReading()
    }

    func transportEnded(_ end: TransportEnd) {
        switch end {
        case .closed, .abandoned: self.tunnel?.connectionClosed(self.side)
        case .failed(let failure): self.tunnel?.connectionFailed(self.side, ConnectionFailure(failure))
        }
    }
}

extension TunnelEnd: WebSocketRelay {
    func webSocketOpened() {}

    func received(_ mark: FramePosition, _ bytes: RawSpan, by source: WebSocketTask, over transport: any Transport) {
        if self.watchesEndMark {
            switch self.endMark.take(mark.kind, count: bytes.byteCount, endsMessage: mark.endsMessage) {
            case .data: break
            case .undecided: return
            case .endMark:
                self.tunnel?.endMarkReceived(self.side)
                return
            }
        }
        guard self.relays else {
            self.tunnel?.receivedAfterEnd(self.side)
            return
        }
        let readAt = self.readBegins()
        let queued: Int
        switch self.target {
        case .stream(let task): queued = self.carry(mark, bytes, by: task)
        case .webSocket(let task):
            queued = task.sendFrame(
                mark.kind, startsMessage: mark.startsMessage, endsMessage: mark.endsMessage, bytes)
        }
        self.didForward(queued: queued, readAt)
    }

    func peerClosed(_ code: CloseCode?, reason: [UInt8]) -> Bool {
        self.tunnel?.closeReceived(self.side, CloseSignal(code: code?.rawValue, reason: reason))
        return false
    }

    func webSocketEnded(_ end: WebSocketEnd) {
        self.tunnel?.webSocketEnded(self.side, end)
        if case .webSocket(let task) = self.target { task.forwardingEnded() }
    }
}

extension TunnelEnd: FrameRelay {
    func received(_ run: FrameRun, _ bytes: RawSpan) {
        guard case .webSocket(let task) = self.target else { return }
        // A partly forwarded frame is completed even when nothing else is forwarded.
        guard self.relays || task.awaitsFrameEnd else { return }
        let readAt = self.readBegins()
        self.didForward(queued: task.forward(run, bytes), readAt)
    }
}

/// Added latency: from the read on one side until the kernel has taken the bytes on the other.
extension TunnelEnd {
    /// - Returns: time of the current read if it is sampled.
    private func readBegins() -> MonotonicInstant? {
        self.reads &+= 1
        guard self.reads % RelayLatency.interval == 1 else { return nil }
        let loop = self.endpoint.loop
        return RelayLatency.shared(on: loop).isEnabled ? loop.system.now() : nil
    }

    /// Bytes read at `readAt` were written to the other side.
    private func forwarded(_ readAt: MonotonicInstant, to other: TunnelEnd) {
        let loop = self.endpoint.loop
        let latency = RelayLatency.shared(on: loop)
        let queued = other.endpoint.queuedBytes
        guard queued > 0 else { return latency.forwarded(readAt, at: loop.system.now()) }
        latency.startWaiting(other, readAt, until: other.task.sentBytes &+ UInt64(queued), at: loop.system.now())
        other.isMeasuringLatency = true
        other.task.awaitProgress()
    }

    private func checkSent() {
        let loop = self.endpoint.loop
        let sent = self.endpoint.queuedBytes == 0 ? .max : self.task.sentBytes
        self.isMeasuringLatency = RelayLatency.shared(on: loop).progressed(self, sent: sent, at: loop.system.now())
    }

    private func stopMeasuring() {
        guard self.isMeasuringLatency else { return }
        self.isMeasuringLatency = false
        RelayLatency.shared(on: self.endpoint.loop).forget(self)
    }
}
