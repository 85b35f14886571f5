import ByteKernels
import DequeModule
import StreamTransport
import WebSocketProtocol

/// Frames in, on the loop.
extension WebSocketTask {
    /// Processes `bytes` until they are used up, the receivers want no more, or the task has used its share of the
    /// turn.
    func processInput(_ bytes: inout MutableRawSpan) -> Int {
        // The payload's consumer is chosen once for all frames of a read.
        let used =
            if let forwarding = self.forwarding {
                self.pullFrames(&bytes, forwarding)
            } else if let relay = self.relay, let transport = self.transport {
                self.pull(&bytes, for: RelayedPayload(relay: relay, transport: transport))
            } else {
                self.pull(&bytes, for: AssembledPayload())
            }
        return self.machine.discardsInput ? bytes.byteCount : used
    }

    private func pull(_ bytes: inout MutableRawSpan, for taker: some PayloadConsumer) -> Int {
        var used = 0
        while used < bytes.byteCount, self.machine.acceptsInput, !self.loop.budgetIsSpent {
            if let message = self.engine.nextWholeMessage(&bytes, at: &used) {
                self.loop.spend(TurnBudget.frame + message.payload.count)
                self.received(message, bytes, for: taker)
                continue
            }
            guard let event = self.engine.nextEvent(&bytes, at: &used) else { break }
            self.loop.spend(event.work)
            switch event {
            case .data(let chunk):
                if chunk.endsFrame, !chunk.endsMessage { self.record.countMoreFramesReceived() }
                self.received(chunk, bytes, for: taker)
            case .ping(let payload):
                self.record.countMoreFramesReceived()
                self.answerPing(payload)
            case .pong(let payload):
                self.record.countMoreFramesReceived()
                self.pongReceived(payload)
            case .close(let code, let reason):
                self.record.countMoreFramesReceived()
                self.endReceived(.close(code, reason: reason))
            case .violation(let violation): self.endReceived(.violation(violation))
            }
        }
        return used
    }

    @inline(__always)
    private func received(
        _ message: WholeMessage, _ bytes: borrowing MutableRawSpan, for taker: some PayloadConsumer
    ) {
        let payload = bytes.bytes.extracting(message.payload)
        self.record.countReceived(bytes: payload.byteCount, messages: 1, at: self.loop.now)
        self.metrics.received(messageOf: payload.byteCount)
        if self.isTapped { self.show(.received, message.kind, payload, startsMessage: true, endsMessage: true) }
        let mark = FramePosition(kind: message.kind, startsMessage: true, endsFrame: true, endsMessage: true)
        taker.take(mark, payload, by: self)
    }

    private func received(
        _ chunk: DataChunk, _ bytes: borrowing MutableRawSpan, for taker: some PayloadConsumer
    ) {
        let mark = FramePosition(
            kind: chunk.kind, startsMessage: chunk.startsMessage, endsFrame: chunk.endsFrame,
            endsMessage: chunk.endsMessage)
        let messages = chunk.endsMessage ? 1 : 0
        switch chunk.payload {
        case .received(let range):
            self.record.countReceived(bytes: range.count, messages: messages, at: self.loop.now)
            self.recordSize(range.count, endsMessage: chunk.endsMessage)
            if self.isTapped {
                self.show(
                    .received, mark.kind, bytes.bytes.extracting(range), startsMessage: mark.startsMessage,
                    endsMessage: mark.endsMessage)
            }
            taker.take(mark, bytes.bytes.extracting(range), by: self)
        case .inflated(let count):
            self.record.countReceived(bytes: count, messages: messages, at: self.loop.now)
            self.recordSize(count, endsMessage: chunk.endsMessage)
            self.deflateContext?.withInflated(count) { payload in
                if self.isTapped {
                    self.show(
                        .received, mark.kind, payload, startsMessage: mark.startsMessage, endsMessage: mark.endsMessage)
                }
                taker.take(mark, payload, by: self)
            }
        }
    }

    @inline(__always)
    private func recordSize(_ count: Int, endsMessage: Bool) {
        guard endsMessage else {
            self.receivedOfMessage &+= UInt32(truncatingIfNeeded: count)
            return
        }
        self.metrics.received(messageOf: Int(self.receivedOfMessage) + count)
        self.receivedOfMessage = 0
    }

    fileprivate func appendPayload(_ mark: FramePosition, _ payload: RawSpan) {
        let queues = self.queues
        queues.assembledPayload.append(payload)
        guard mark.endsMessage else { return }
        let message = queues.takeMessage(mark.kind)
        // After our own Close reading cannot pause any more: messages without a receiver are discarded (RFC 6455 §1.4).
        if self.machine.isClosing, queues.inbox.isFull(limit: self.options.maximumMessageSize ?? (1 << 20)) { return }
        queues.inbox.append(message)
        self.completeReceives()
        self.updateReading()
    }

    func completeReceives() {
        guard let queues = self.queuesIfMade else { return }
        while let action = queues.inbox.nextAction() {
            switch action {
            case .deliver(let completion, let result): completion(result)
            case .refuse(let refused): refused()
            }
        }
    }

    /// - Returns: a number by which the receive can be withdrawn.
    @discardableResult
    package func receive(_ completion: @escaping (Result<Message, TaskFailure>) -> Void) -> UInt64 {
        self.receive(on: nil, completion)
    }

    func receive(on condition: MessageInbox.Condition?, _ completion: @escaping MessageInbox.Completion) -> UInt64 {
        self.loop.assertOnLoop()
        let number = self.nextNumber()
        if self.machine.hasEnded { self.queues.inbox.fail(self.failure ?? .closed) }
        self.queues.inbox.append(.init(number: number, condition: condition, completion: completion))
        self.completeReceives()
        if self.machine.hasDeferredEnd, !self.queues.inbox.isBehind { self.processDeferredEnd() }
        self.updateReading()
        return number
    }

    package func withdrawReceive(_ number: UInt64) {
        self.loop.assertOnLoop()
        self.queuesIfMade?.inbox.withdraw(number)?(.failure(.cancelled))
    }

    // MARK: Reading or not

    /// From now on `relay` is given the frames as they come; call `resumeReading` when it is ready.
    package func attach(_ relay: any WebSocketRelay) {
        self.loop.assertOnLoop()
        self.relay = relay
    }

    /// Pauses reading for a relay whose other side is behind.
    package func pauseReading() {
        self.loop.assertOnLoop()
        self.machine.consumerPaused()
        self.transport?.pauseReading()
    }

    package func resumeReading() {
        self.loop.assertOnLoop()
        self.machine.consumerResumed()
        self.updateReading()
    }

    /// Most bytes taken from the kernel in one read.
    package func setReadLimit(_ bytes: Int) {
        self.transport?.readLimit = bytes
    }

    /// Pauses or resumes the transport's reading to match demand.
    func updateReading() {
        if self.relay == nil, self.machine.isOpen, let queues = self.queuesIfMade {
            let isFull = queues.inbox.isFull(limit: self.options.maximumMessageSize ?? (1 << 20))
            isFull ? self.machine.consumerPaused() : self.machine.consumerResumed()
        }
        switch self.machine.reading {
        case .ignore: break
        case .pause: self.transport?.pauseReading()
        case .resume: self.transport?.resumeReading()
        }
    }
}

extension WebSocketEvent {
    /// Work in units of `TurnBudget`.
    fileprivate var work: Int {
        guard case .data(let chunk) = self else { return TurnBudget.frame }
        switch chunk.payload {
        case .received(let range): return TurnBudget.frame + range.count
        case .inflated(let count): return TurnBudget.compression + count * TurnBudget.inflatedByte
        }
    }
}

extension WebSocketTask: TransportConsumer {
    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        self.keepAlive?.peerResponded()
        switch self.machine.phase {
        case .opening: return self.responseReceived(&bytes)
        case .open: return self.processInput(&bytes)
        case .closing:
            if self.relay != nil { self.waitForClose() }
            return self.processInput(&bytes)
        case .closeReceived, .draining, .ended: return bytes.byteCount
        }
    }

    package func inputClosed() {
        self.processDeferredEnd()
        switch self.machine.inputEndAction {
        case .ignore: break
        case .interruptOpening: self.openingInterrupted()
        case .failConnection:
            self.failure = self.failure ?? .connectionLost(TransportError(missing: .closeFrame))
            self.transport?.close(linger: .seconds(1))
            self.finish()
        case .endTransport:
            self.transport?.close(linger: .seconds(2))
            self.finish()
        }
    }

    package func outputProgressed() {
        if self.machine.pauses.contains(.output), self.pausingBytes <= WebSocketTask.outputWatermark / 4 {
            self.machine.outputCaughtUp()
            self.record.stallEnded(at: self.loop.now)
            self.updateReading()
        }
        if self.machine.awaitsPeerEnd || self.isCloseQueued { self.waitForClose() }
        if self.forwarding?.ping != nil { self.keepAlive?.peerResponded() }
        self.answerSent()
        self.sendWaiting()
        self.relay?.outputProgressed()
    }

    package func transportEnded(_ end: TransportEnd) {
        self.processDeferredEnd()
        self.transport = nil
        if self.machine.isCutOffByEnd, self.failure == nil { self.failure = TaskFailure(end) }
        self.finish()
    }
}

/// Received messages or waiting receivers, in FIFO order; never both at once.
struct MessageInbox {
    typealias Completion = (Result<WebSocketTask.Message, TaskFailure>) -> Void

    /// Of a receiver that does not take every message: one that it refuses stays the next one.
    struct Condition {
        let accepts: (WebSocketTask.Message) -> Bool
        /// Called instead of the completion.
        let refused: () -> Void
    }

    struct Receiver {
        let number: UInt64
        let condition: Condition?
        let completion: Completion
    }

    enum Action {
        case deliver(Completion, Result<WebSocketTask.Message, TaskFailure>)
        case refuse(() -> Void)
    }

    /// Messages kept without a receiver before reading pauses; the limit on their bytes applies as well.
    private static let messageLimit = 64

    private var messages: Deque<WebSocketTask.Message> = []
    private var receivers: Deque<Receiver> = []
    private(set) var bytes = 0
    /// The last message was delivered, and no receive was requested since.
    private var isLastMessageUnacknowledged = false
    private var failure: TaskFailure?

    var messageCount: Int {
        self.messages.count
    }

    /// Whether the peer should wait: messages have no receiver.
    func isFull(limit: Int) -> Bool {
        self.messages.count >= Self.messageLimit || !self.messages.isEmpty && self.bytes >= limit
    }

    mutating func append(_ message: WebSocketTask.Message) {
        self.messages.append(message)
        self.bytes += message.count
    }

    /// Whether a receiver is behind: messages wait, or the last one delivered is being processed.
    var isBehind: Bool {
        !self.messages.isEmpty || self.isLastMessageUnacknowledged
    }

    mutating func append(_ receiver: Receiver) {
        self.isLastMessageUnacknowledged = false
        self.receivers.append(receiver)
    }

    /// Fails the waiting receivers and all later ones; messages already received are delivered first.
    mutating func fail(_ failure: TaskFailure) {
        if self.failure == nil { self.failure = failure }
    }

    mutating func nextAction() -> Action? {
        guard let receiver = self.receivers.first else { return nil }
        if let condition = receiver.condition, let message = self.messages.first, !condition.accepts(message) {
            self.receivers.removeFirst()
            return .refuse(condition.refused)
        }
        if let message = self.messages.popFirst() {
            self.bytes -= message.count
            self.receivers.removeFirst()
            self.isLastMessageUnacknowledged = self.receivers.isEmpty
            return .deliver(receiver.completion, .success(message))
        }
        guard let failure = self.failure else { return nil }
        self.receivers.removeFirst()
        return .deliver(receiver.completion, .failure(failure))
    }

    mutating func withdraw(_ number: UInt64) -> Completion? {
        guard let index = self.receivers.firstIndex(where: { $0.number == number }) else { return nil }
        return self.receivers.remove(at: index).completion
    }
}

/// The queues of a WebSocket task that is used message by message.
final class MessageQueues {
    var inbox = MessageInbox()
    var outgoing = OutgoingMessages()
    var pings = PendingPings()
    var pongs: [UInt64: PendingPong] = [:]
    /// The message that is being received.
    var assembledPayload: [UInt8] = []
    var heldEnd: DeferredEnd?
    /// Called with the peer's Close frame, before the end.
    var closeObserver: ((CloseCode?, [UInt8]) -> Void)?

    func takeMessage(_ kind: MessageKind) -> WebSocketTask.Message {
        var bytes: [UInt8] = []
        swap(&bytes, &self.assembledPayload)
        switch kind {
        case .binary: return .data(bytes)
        // The engine has checked every byte.
        case .text: return .string(String(decoding: bytes, as: UTF8.self))
        }
    }
}

/// Payload assembled to messages for receivers.
private struct AssembledPayload: PayloadConsumer {
    @inline(__always)
    func take(_ mark: FramePosition, _ payload: RawSpan, by task: WebSocketTask) {
        task.appendPayload(mark, payload)
    }
}

/// Consumer of the payload of a read's frames: a generic parameter chosen once per read, so that it costs nothing per
/// frame.
protocol PayloadConsumer {
    func take(_ mark: FramePosition, _ payload: RawSpan, by task: WebSocketTask)
}
