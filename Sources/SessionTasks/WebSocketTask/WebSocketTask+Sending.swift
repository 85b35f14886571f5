import ByteKernels
import DequeModule
import StreamTransport
import WebSocketProtocol

/// Frames out, on the loop.
extension WebSocketTask {
    /// Most bytes of payload compressed in one step by code that must not hold up the loop: a millisecond or two.
    package static let compressedPiece = 64 << 10

    /// Whether compression was agreed, so that sending takes far longer than copying.
    package var compresses: Bool { self.deflateContext != nil }

    /// Writes one data frame at the end of the turn, compressed if that was agreed and the message is worth it. Ignored
    /// unless the task is open, or has yet to answer the peer's Close.
    /// - Returns: the bytes that wait in the transport now; 0 where it was ignored.
    @discardableResult
    package func sendFrame(_ kind: MessageKind, startsMessage: Bool, endsMessage: Bool, _ payload: RawSpan) -> Int {
        self.loop.assertOnLoop()
        guard let transport = self.transport else { return 0 }
        return self.sendFrame(kind, startsMessage: startsMessage, endsMessage: endsMessage, payload, over: transport)
    }

    /// As `sendFrame`, for callers that have the task's transport already.
    @discardableResult
    package func sendFrame(
        _ kind: MessageKind, startsMessage: Bool, endsMessage: Bool, _ payload: RawSpan, over transport: any Transport
    ) -> Int {
        self.loop.assertOnLoop()
        guard self.machine.acceptsData else { return 0 }
        let opcode: Opcode = startsMessage ? kind.opcode : .continuation
        let queued: Int
        // Without compression the engine is not asked.
        if self.deflateContext != nil,
            let context = self.engine.compress(startsMessage: startsMessage, endsMessage: endsMessage, payload)
        {
            self.loop.spend(TurnBudget.compression + payload.byteCount * TurnBudget.compressedByte)
            queued = context.withCompressed {
                self.write(opcode, isFinal: endsMessage, isCompressed: startsMessage, $0, to: transport)
            }
        } else {
            queued = self.write(opcode, isFinal: endsMessage, isCompressed: false, payload, to: transport)
        }
        if self.isTapped {
            self.show(.sent, kind, payload, startsMessage: startsMessage, endsMessage: endsMessage)
        }
        self.record.countSent(bytes: payload.byteCount, messages: endsMessage ? 1 : 0, at: self.loop.now)
        if self.machine.pieceSent(endsMessage: endsMessage) { self.sendWaiting() }
        return queued
    }

    /// Sends a message that many connections get, as `sendFrame` does. It is compressed once for all connections of this
    /// loop that agreed on the same parameters without context takeover.
    package func send(_ message: SharedMessage) {
        self.loop.assertOnLoop()
        guard let transport = self.transport, self.machine.acceptsData else { return }
        guard self.deflateContext != nil,
            let parameters = self.engine.sharedCompression(count: message.payload.count)
        else {
            message.payload.withRawSpan {
                _ = self.sendFrame(message.kind, startsMessage: true, endsMessage: true, $0, over: transport)
            }
            return
        }
        let compressed = message.compressed(with: parameters) {
            self.loop.spend(TurnBudget.compression + message.payload.count * TurnBudget.compressedByte)
            return message.payload.withRawSpan { payload in
                self.engine.compress(startsMessage: true, endsMessage: true, payload)?.withCompressed { bytes in
                    var copy: [UInt8] = []
                    copy.append(bytes)
                    return copy
                }
            }
        }
        (compressed ?? message.payload).withRawSpan {
            _ = self.write(message.kind.opcode, isFinal: true, isCompressed: compressed != nil, $0, to: transport)
        }
        if self.isTapped {
            message.payload.withRawSpan {
                self.show(.sent, message.kind, $0, startsMessage: true, endsMessage: true)
            }
        }
        self.record.countSent(bytes: message.payload.count, messages: 1, at: self.loop.now)
        if self.machine.pieceSent(endsMessage: true) { self.sendWaiting() }
    }

    /// - Returns: the bytes that wait in the transport now; 0 where the frame itself has to wait.
    @discardableResult
    func sendControl(_ opcode: Opcode, _ payload: [UInt8]) -> Int {
        guard let transport = self.transport else { return 0 }
        if self.machine.isInsideFrame, let forwarding = self.forwarding {
            forwarding.deferFrame(opcode, payload)
            return 0
        }
        return payload.withRawSpan { self.write(opcode, isFinal: true, isCompressed: false, $0, to: transport) }
    }

    private func write(
        _ opcode: Opcode, isFinal: Bool, isCompressed: Bool, _ payload: RawSpan, to transport: any Transport
    ) -> Int {
        if !isFinal || opcode.isControl { self.record.countMoreFramesSent() }
        let count = payload.byteCount
        if let head = self.role.shortHeader(opcode, isFinal: isFinal, isCompressed: isCompressed, payloadCount: count) {
            return transport.write(head, payload)
        }
        let keys = self.keys
        let role = self.role
        return transport.write(reserving: role.frameSize(payloadCount: count)) { target in
            role.encodeFrame(opcode, isFinal: isFinal, isCompressed: isCompressed, payload, keys: keys, into: &target)
        }
    }

    /// Pauses reading from a peer that makes us write without reading it, for a task whose output are answers alone, as
    /// echoes: if it applied to our own messages, two ends that both send much would wait for each other.
    /// - Parameter queued: bytes queued in the transport after the last answer.
    @inlinable
    package func stopReadingIfBehind(_ queued: Int) {
        if queued > WebSocketTask.outputWatermark { self.stopReading() }
    }

    @usableFromInline
    func stopReading() {
        self.queuedPongs?.pauseReading = false
        self.pauseForOutput()
    }

    /// The same for Pongs, which may be queued behind our own messages.
    /// - Parameter queued: bytes queued in the transport after the Pong.
    func stopReadingIfBehind(onPongOf count: Int, queued: Int) {
        guard queued > 0, let transport = self.transport else { return }
        var pongs = self.queuedPongs ?? QueuedPongs()
        pongs.added(self.role.frameSize(payloadCount: count), end: transport.writtenBytes)
        let isBehind = pongs.bytes(sent: transport.sentBytes) > WebSocketTask.outputWatermark
        if isBehind, !self.machine.pauses.contains(.output) { pongs.pauseReading = true }
        self.queuedPongs = pongs
        if isBehind { self.pauseForOutput() }
    }

    /// The output that reading is paused for: Pongs, or all output.
    var pausingBytes: Int {
        guard self.queuedPongs?.pauseReading == true, let transport = self.transport else { return self.queuedBytes }
        return self.queuedPongs?.bytes(sent: transport.sentBytes) ?? 0
    }

    private func pauseForOutput() {
        guard self.machine.outputFellBehind() else { return }
        self.record.stallBegins(at: self.loop.now)
        self.transport?.pauseReading()
        self.transport?.awaitProgress()
    }

    /// Asks for one `outputProgressed` of the relay when all that was written has left.
    package func awaitProgress() {
        self.loop.assertOnLoop()
        self.transport?.awaitProgress()
    }

    /// Bytes that the kernel took, of everything written on this connection.
    package var sentBytes: UInt64 {
        self.transport?.sentBytes ?? 0
    }

    /// How long output waited for the peer to read; nothing once the connection is over.
    package var outputStall: OutputStall { self.transport?.outputStall ?? OutputStall() }

    package var queuedBytes: Int {
        self.transport?.queuedBytes ?? 0
    }

    /// Bytes written on the wire so far, frame headers included and after compression; 0 without a connection.
    package var writtenBytes: UInt64 {
        self.transport?.writtenBytes ?? 0
    }

    // MARK: Queued

    /// Takes up what waited for the handshake or for the transport, in order.
    func sendWaiting() {
        guard let queues = self.queuesIfMade, self.machine.startsMessages else { return }
        while self.machine.isOpen, self.queuedBytes < WebSocketTask.outputWatermark,
            let entry = queues.outgoing.popFirst()
        {
            self.begin(entry, queues)
        }
        self.answerSent()
        // After our Close nothing that still waits will ever begin.
        if queues.outgoing.hasStarted || (self.machine.isOpen && !queues.outgoing.isEmpty) {
            self.transport?.awaitProgress()
        }
    }

    private func begin(_ entry: OutgoingMessages.Entry, _ queues: MessageQueues) {
        switch entry.item {
        case .message(.data(let bytes), let completion):
            bytes.withRawSpan { self.sendFrame(.binary, startsMessage: true, endsMessage: true, $0) }
            self.await(completion, queues)
        case .message(.string(let text), let completion):
            Array(text.utf8).withRawSpan { self.sendFrame(.text, startsMessage: true, endsMessage: true, $0) }
            self.await(completion, queues)
        case .ping(let payload, let completion):
            self.beginPing(entry.number, payload, completion)
        case .close(let code, let reason):
            self.beginClose(code, reason: reason)
        }
    }

    private func await(_ completion: @escaping OutgoingMessages.Completion, _ queues: MessageQueues) {
        guard let transport = self.transport else {
            return completion(.failure(.ended))
        }
        queues.outgoing.began(doneAt: transport.writtenBytes, completion)
    }

    func answerSent() {
        guard let queues = self.queuesIfMade, let transport = self.transport else { return }
        while let completion = queues.outgoing.popDone(sentBytes: transport.sentBytes) { completion(.success(())) }
    }

    /// - Returns: a number by which the send can be withdrawn while it waits.
    @discardableResult
    package func send(_ message: Message, _ completion: @escaping (Result<Void, TaskFailure>) -> Void) -> UInt64 {
        self.enqueue(.message(message, completion))
    }

    @discardableResult
    package func sendPing(_ payload: [UInt8], _ completion: @escaping (Result<Void, TaskFailure>) -> Void) -> UInt64 {
        self.enqueue(.ping(payload, completion))
    }

    private func enqueue(_ item: OutgoingMessages.Item) -> UInt64 {
        let number = self.nextNumber()
        if self.machine.acceptsMessages {
            self.queues.outgoing.append(.init(number: number, item: item))
            self.sendWaiting()
        } else {
            self.fail(item)
        }
        return number
    }

    private func fail(_ item: OutgoingMessages.Item) {
        switch item {
        case .message(_, let completion), .ping(_, let completion): completion(.failure(self.failure ?? .closed))
        case .close: break
        }
    }

    /// Takes back a message that has not begun, or ends the wait for a ping's Pong.
    package func withdrawSend(_ number: UInt64) {
        self.loop.assertOnLoop()
        guard let queues = self.queuesIfMade else { return }
        let completion = queues.outgoing.withdraw(number) ?? queues.pongs.removeValue(forKey: number)?.completion
        completion?(.failure(.cancelled))
    }

    func failWaiting() {
        guard let queues = self.queuesIfMade else { return }
        let failure = self.failure ?? .closed
        for completion in queues.outgoing.removeAll() { completion(.failure(failure)) }
        let pongs = queues.pongs.sorted { $0.key < $1.key }.map(\.value.completion)
        queues.pongs = [:]
        for completion in pongs { completion(.failure(failure)) }
        self.failReceivers(failure)
    }

    /// No message will come any more; those that are here are still given out.
    func failReceivers(_ failure: TaskFailure) {
        guard let queues = self.queuesIfMade else { return }
        queues.inbox.fail(failure)
        self.completeReceives()
    }
}

/// A message for many connections of one loop, with its compressed forms: each is made once.
package final class SharedMessage {
    package let kind: MessageKind
    package let payload: [UInt8]
    private var compressed: [SharedCompression: [UInt8]] = [:]

    package init(_ kind: MessageKind, _ payload: [UInt8]) {
        self.kind = kind
        self.payload = payload
    }

    fileprivate func compressed(with parameters: SharedCompression, _ make: () -> [UInt8]?) -> [UInt8]? {
        if let made = self.compressed[parameters] { return made }
        guard let made = make() else { return nil }
        self.compressed[parameters] = made
        return made
    }
}

/// Messages, pings and a close that wait for their turn: for the opening handshake, or for the transport's queue to go
/// down.
struct OutgoingMessages {
    typealias Completion = (Result<Void, TaskFailure>) -> Void

    enum Item {
        case message(WebSocketTask.Message, Completion)
        case ping([UInt8], Completion)
        case close(UInt16?, [UInt8])
    }

    struct Entry {
        let number: UInt64
        let item: Item

        /// Bytes of payload.
        fileprivate var count: Int {
            switch self.item {
            case .message(let message, _): message.count
            case .ping(let payload, _), .close(_, let payload): payload.count
            }
        }
    }

    /// Given to the transport; done when it has sent up to `doneAt`.
    private struct Started {
        let doneAt: UInt64
        let completion: Completion
    }

    private var waiting: Deque<Entry> = []
    private var started: Deque<Started> = []
    /// Payload of everything that waits.
    private(set) var waitingBytes = 0

    var isEmpty: Bool {
        self.waiting.isEmpty
    }

    var waitingCount: Int {
        self.waiting.count
    }

    /// Whether a Close waits. What comes after it is never sent.
    private(set) var containsClose = false

    /// Whether something given to the transport is not sent yet.
    var hasStarted: Bool {
        !self.started.isEmpty
    }

    mutating func append(_ entry: Entry) {
        self.waiting.append(entry)
        self.waitingBytes += entry.count
        if case .close = entry.item { self.containsClose = true }
    }

    mutating func popFirst() -> Entry? {
        guard let entry = self.waiting.popFirst() else { return nil }
        self.waitingBytes -= entry.count
        if case .close = entry.item { self.containsClose = false }
        return entry
    }

    mutating func began(doneAt: UInt64, _ completion: @escaping Completion) {
        self.started.append(Started(doneAt: doneAt, completion: completion))
    }

    mutating func popDone(sentBytes: UInt64) -> Completion? {
        guard let first = self.started.first, first.doneAt <= sentBytes else { return nil }
        self.started.removeFirst()
        return first.completion
    }

    /// Takes one entry out that has not begun.
    mutating func withdraw(_ number: UInt64) -> Completion? {
        guard let index = self.waiting.firstIndex(where: { $0.number == number }) else { return nil }
        let entry = self.waiting.remove(at: index)
        self.waitingBytes -= entry.count
        switch entry.item {
        case .message(_, let completion), .ping(_, let completion): return completion
        case .close: return nil
        }
    }

    /// Everything that will not happen any more.
    mutating func removeAll() -> [Completion] {
        let unfinished = self.started.map(\.completion)
        let unbegun = self.waiting.compactMap { entry -> Completion? in
            switch entry.item {
            case .message(_, let completion), .ping(_, let completion): completion
            case .close: nil
            }
        }
        self.started = []
        self.waiting = []
        self.waitingBytes = 0
        self.containsClose = false
        return unfinished + unbegun
    }
}

/// Pongs that the kernel has not taken yet, between our own messages.
struct QueuedPongs {
    private struct Group {
        var bytes = 0
        /// Bytes written on the connection up to the last of them.
        var end: UInt64 = 0
    }

    /// Reading is paused for them.
    var pauseReading = false
    /// Those before the first of `newer`. Two groups bound what is counted as queued by twice the queue.
    private var older = Group()
    private var newer = Group()

    mutating func added(_ bytes: Int, end: UInt64) {
        self.newer.bytes += bytes
        self.newer.end = end
        if self.older.bytes == 0 { swap(&self.older, &self.newer) }
    }

    /// - Parameter sent: bytes of the connection that the kernel took.
    mutating func bytes(sent: UInt64) -> Int {
        if sent >= self.older.end { (self.older, self.newer) = (self.newer, Group()) }
        if sent >= self.older.end { self.older = Group() }
        return self.older.bytes + self.newer.bytes
    }
}
