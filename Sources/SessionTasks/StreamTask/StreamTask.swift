import StreamTransport

/// A byte stream to a peer, opened by this side or accepted, with queued reads and writes.
///
/// Reads complete in order, writes are sent in order, and the two do not wait for each other. `closeRead`,
/// `closeWrite`, `startSecureConnection` and `captureStreams` run after the operations requested before them. Usable
/// from any thread.
///
/// - Source: the URL loading system's `URLSessionStreamTask`; both roles are ours.
public final class StreamTask: @unchecked Sendable {  // The loop's thread alone changes what changes.
    /// Result of one read.
    public struct Chunk: Sendable, Hashable {
        /// Between the read's minimum and maximum; fewer only at the end of the stream.
        public let bytes: [UInt8]
        /// The peer has finished sending, and nothing is left to read.
        public let isAtEnd: Bool
    }

    /// Bytes that may wait in the transport before further writes are held back in the task's own queue.
    static let outputWatermark = 256 << 10

    package let record: TaskRecord
    package let loop: Loop

    // Everything below belongs to the loop's thread.
    var transport: (any Transport)?
    var opening: TransportOpening?
    private var target: Indirect<OpeningTarget>?
    /// On the loop, a relay takes the bytes instead of the read queue.
    var relay: (any TransportConsumer)?
    private var madeQueues: StreamQueues?
    var securing: SecuringStep?
    private var suspensions: Int
    /// When the task was suspended, if it is; before its first resumption, the clock's origin.
    private var suspendedAt = MonotonicInstant(nanoseconds: 0)
    var machine = StreamMachine()
    /// At least one tap is attached.
    var isTapped = false
    /// Made by the first deadline; a relayed task never makes it.
    private var timer: LoopTimer?
    /// Called once when the transport is ready for the task's bytes.
    package var openObserver: (() -> Void)?
    private var lastNumber: UInt64 = 0
    private var endObserver: ((TaskFailure?) -> Void)?

    /// A task that will connect to `target` when first resumed.
    package init(to target: OpeningTarget, on loop: Loop) {
        self.record = TaskRecord(state: .suspended)
        self.loop = loop
        self.target = .value(target)
        self.suspensions = 1
    }

    /// The task of an accepted connection: it runs from the start. On the loop.
    /// - Parameters:
    ///   - unread: bytes that were received before; they are read first.
    ///   - readsOnly: writes fail with `directionClosed`, and the peer is not told that none follow.
    package init(adopting transport: any Transport, unread: [UInt8] = [], readsOnly: Bool = false) {
        self.record = TaskRecord(state: .running)
        self.loop = transport.loop
        self.suspensions = 0
        if readsOnly { self.refuseWrites() }
        self.transportOpened(transport)
        if !unread.isEmpty { self.received(earlier: unread) }
    }

    /// Made on first use, then updated with what happened before.
    var queues: StreamQueues {
        if let made = self.madeQueues { return made }
        let made = StreamQueues()
        self.madeQueues = made
        if self.machine.peerFinished { made.reads.inputClosed() }
        if self.machine.hasEnded {
            let failure = self.record.read { $0.failure } ?? .ended
            made.reads.fail(failure)
            made.sends.fail(failure)
        }
        return made
    }

    var queuesIfMade: StreamQueues? {
        self.madeQueues
    }

    func nextNumber() -> UInt64 {
        self.lastNumber += 1
        return self.lastNumber
    }

    func arm(at deadline: MonotonicInstant) {
        let timer = self.timer ?? LoopTimer()
        self.timer = timer
        self.loop.arm(timer, at: deadline, target: self)
    }

    func disarm() {
        if let timer = self.timer { self.loop.disarm(timer) }
    }

    var isRunning: Bool {
        self.suspensions == 0 && !self.machine.hasEnded
    }

    /// Deadline of a timeout that begins now. Time in suspension is not counted: resuming adds it.
    func deadline(after timeout: Duration?) -> MonotonicInstant? {
        timeout.map { (self.suspensions > 0 ? self.suspendedAt : self.loop.now).advanced(by: $0) }
    }

    // MARK: Opening, suspending, ending, on the loop

    package func resumeOnLoop() {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded, self.suspensions > 0 else { return }
        self.suspensions -= 1
        guard self.suspensions == 0 else { return }
        self.record.state = .running
        let away = self.suspendedAt.duration(to: self.loop.now)
        self.queuesIfMade?.reads.postpone(by: away)
        self.queuesIfMade?.sends.postpone(by: away)
        if let target = self.target.take() { self.open(target.value) }
        self.opening?.isHeld = false
        self.securing?.transport?.isTimeoutHeld = false
        guard self.relay != nil else { return self.advance() }
        self.runSends()
        if case .wanted = self.machine.relayReading { self.transport?.resumeReading() }
    }

    package func suspendOnLoop() {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else { return }
        if self.suspensions == 0 { self.suspendedAt = self.loop.now }
        self.suspensions += 1
        self.record.state = .suspended
        self.transport?.pauseReading()
        self.opening?.isHeld = true
        self.securing?.transport?.isTimeoutHeld = true
        self.disarm()
    }

    package func cancelOnLoop() {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else { return }
        self.record.state = .canceling
        self.finish(.cancelled)
    }

    private func open(_ target: OpeningTarget) {
        self.opening = TransportOpening(target, on: self.loop, connected: { self.record.isConnected = true }) {
            result in
            self.opening = nil
            switch result {
            case .success(let transport): self.transportOpened(transport)
            case .failure(let failure): self.finish(TaskFailure(failure))
            }
        }
    }

    func transportOpened(_ transport: any Transport) {
        self.transport = transport
        transport.consumer = self
        self.record.connected(transport)
        self.record.markOpened(at: self.loop.now)
        self.openObserver.take()?()
        self.advance()
    }

    /// Calls `observer` once, on the loop, when the task is over (at once if it is): `nil` for a clean end.
    package func whenEnded(_ observer: @escaping (TaskFailure?) -> Void) {
        self.loop.assertOnLoop()
        if self.machine.hasEnded { return observer(self.record.read { $0.failure }) }
        guard let earlier = self.endObserver else { return self.endObserver = observer }
        self.endObserver = { failure in
            earlier(failure)
            observer(failure)
        }
    }

    /// Removes the end observers: the task has a new owner.
    package func forgetEndObservers() {
        self.endObserver = nil
    }

    /// Ends the task: completes all waiting operations; after a failure resets the transport, if there is one.
    func finish(_ failure: TaskFailure?) {
        guard self.machine.end() else { return }
        self.disarm()
        self.opening?.cancel()
        self.opening = nil
        self.target = nil
        self.openObserver = nil
        self.relay = nil
        self.record.update { $0.failure = failure }
        self.securing?.transport?.reset()
        self.failWaiting(failure ?? .ended)
        self.madeQueues?.forgetObservers()
        self.record.state = .completed
        if let transport = self.transport.take() {
            transport.consumer = nil
            if failure != nil { transport.reset() } else { transport.close(linger: .seconds(5)) }
        }
        self.endObserver.take()?(failure)
    }

    private func failWaiting(_ failure: TaskFailure) {
        self.queuesIfMade?.reads.fail(failure)
        self.queuesIfMade?.sends.fail(failure)
        self.securing.take()?.completion(.failure(failure))
        // Barriers among them fail as the queues come to them.
        self.runReads()
        self.runSends()
    }
}

/// The task's verbs, on the loop; the public asynchronous ones come down to these.
extension StreamTask {
    /// - Returns: a number by which the read can be withdrawn.
    @discardableResult
    package func read(
        minimum: Int, maximum: Int, timeout: Duration?, _ completion: @escaping ReadQueue.Completion
    ) -> UInt64 {
        let number = self.nextNumber()
        guard maximum > 0, minimum >= 0, minimum <= maximum else {
            completion(.failure(.usageError("a read needs 0 <= minimum <= maximum and a maximum of at least 1")))
            return number
        }
        self.queues.reads.append(
            .transfer(
                .init(
                    number: number, minimum: max(1, minimum), maximum: maximum,
                    deadline: self.deadline(after: timeout), completion: completion)))
        self.advanceOrFail()
        return number
    }

    @discardableResult
    package func write(_ bytes: [UInt8], timeout: Duration?, _ completion: @escaping SendQueue.Completion) -> UInt64 {
        let number = self.nextNumber()
        self.queues.sends.append(
            .transfer(
                .init(
                    number: number, bytes: bytes, deadline: self.deadline(after: timeout), completion: completion)))
        self.advanceOrFail()
        return number
    }

    package func withdrawRead(_ number: UInt64) {
        self.loop.assertOnLoop()
        self.queues.reads.withdraw(number)?(.failure(.cancelled))
        self.advanceOrFail()
    }

    package func withdrawWrite(_ number: UInt64) {
        self.loop.assertOnLoop()
        self.queues.sends.withdraw(number)?(.failure(.cancelled))
        self.advanceOrFail()
    }

    package func closeReadOnLoop() {
        self.loop.assertOnLoop()
        self.queues.reads.append(.close)
        self.advanceOrFail()
    }

    package func closeWriteOnLoop() {
        self.loop.assertOnLoop()
        self.queues.sends.append(.close)
        self.advanceOrFail()
    }

    /// Closes the task cleanly: queued writes are sent, further input is not read.
    package func closeOnLoop() {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else { return }
        guard self.transport != nil || self.machine.outlivesTransport else { return self.cancelOnLoop() }
        self.finish(nil)
    }

    /// Buffers up to `limit` bytes without a read, and reports each direction that closes cleanly, once: reading by
    /// either end, even if bytes are unread, and writing by ours.
    package func watchDirections(
        readAhead limit: Int, inputClosed: @escaping () -> Void, outputClosed: @escaping () -> Void
    ) {
        self.loop.assertOnLoop()
        self.queues.readAhead = limit
        self.queues.inputObserver = inputClosed
        self.queues.outputObserver = outputClosed
        if self.machine.peerFinished { inputClosed() }
        if self.machine.writingIsOver { outputClosed() }
        self.advance()
    }

    /// After the end the queues still answer, at once.
    private func advanceOrFail() {
        if self.machine.hasEnded {
            self.runReads()
            self.runSends()
        } else {
            self.advance()
        }
    }
}

/// The task from any thread.
extension StreamTask {
    /// Reads the next bytes of the stream.
    ///
    /// Cancelling the awaiting Swift task withdraws the read if it was not answered yet; bytes that had come for it go
    /// to the next read.
    ///
    /// When the connection fails, reads still get what had been read of it before, in order, and then the failure.
    /// - Parameters:
    ///   - minimum: the read waits until so many bytes are there, or the stream ends; 0 counts as 1.
    ///   - maximum: at least 1 and not below `minimum`.
    ///   - timeout: counted from now, without the time in suspension; `nil` waits without limit. When it passes, this
    ///     read and all reads after it fail.
    /// - Throws: `TaskFailure`.
    public func read(minimum: Int = 1, maximum: Int, timeout: Duration? = nil) async throws(TaskFailure) -> Chunk {
        try await AwaitedOperation.result(on: self.loop) {
            self.read(minimum: minimum, maximum: maximum, timeout: timeout, $0)
        } withdraw: {
            self.withdrawRead($0)
        }
    }

    /// Writes all of `bytes` after earlier writes; returns when the kernel has accepted every byte, which does not mean
    /// that the peer has received them.
    ///
    /// Cancelling the awaiting Swift task withdraws the write if it has not started; one that has started is completed.
    /// - Throws: `TaskFailure`.
    public func write(_ bytes: [UInt8], timeout: Duration? = nil) async throws(TaskFailure) {
        try await AwaitedOperation.result(on: self.loop) {
            self.write(bytes, timeout: timeout, $0)
        } withdraw: {
            self.withdrawWrite($0)
        }
    }

    /// Ends the output (FIN; under TLS close_notify) after all earlier writes. Reading continues.
    public func closeWrite() {
        self.loop.execute { self.closeWriteOnLoop() }
    }

    /// Stops reading after all earlier reads complete. Writing continues.
    public func closeRead() {
        self.loop.execute { self.closeReadOnLoop() }
    }

    /// Suspends the task; nests with `resume`.
    public func suspend() {
        self.loop.execute { self.suspendOnLoop() }
    }

    /// Starts the task, or undoes one `suspend`. More resumes than suspends do no harm.
    public func resume() {
        self.loop.execute { self.resumeOnLoop() }
    }

    /// Ends the task at once: the connection is reset and everything that waits fails with `.cancelled`.
    public func cancel() {
        self.record.state = .canceling
        self.loop.execute { self.cancelOnLoop() }
    }

    /// Starts TLS on the open connection after all earlier reads and writes; later ones wait for it, and fail if TLS
    /// does not begin.
    ///
    /// Bytes received after those already read are taken as the peer's handshake, never as plaintext. Cancelling the
    /// awaiting Swift task before TLS is established cancels the whole task: data meant for TLS must not go out in the
    /// clear.
    /// - Throws: `TaskFailure.secureConnectionFailed`; the task is then over.
    package func startSecureConnection(_ settings: SecureSettings) async throws(TaskFailure) {
        try await AwaitedOperation.result(on: self.loop) {
            self.startSecure(settings, $0)
        } withdraw: {
            self.withdrawSecuring($0)
        }
    }
}

/// The task as one end of a relay, which takes the bytes as they arrive and writes without queueing operations. On the loop;
/// the task still counts, shows its metadata and can be cancelled.
extension StreamTask {
    /// Directs the transport's events to `relay`; the read queue is not used. Reading starts with `resumeReading`.
    package func attach(_ relay: any TransportConsumer) {
        self.loop.assertOnLoop()
        self.relay = relay
        self.disarm()
    }

    /// Writes at once what the kernel takes and queues the rest in the transport.
    /// - Returns: the bytes that wait there now.
    @discardableResult
    package func send(_ bytes: RawSpan) -> Int {
        guard let transport = self.transport else { return 0 }
        let queued = transport.writeThrough(bytes)
        self.sent(bytes)
        return queued
    }

    /// Writes at the end of the turn, together with what else is written in it.
    /// - Returns: the bytes that wait in the transport now.
    @discardableResult
    package func enqueue(_ bytes: RawSpan) -> Int {
        guard let transport = self.transport else { return 0 }
        let queued = transport.write(bytes)
        self.sent(bytes)
        return queued
    }

    /// Socket to which output may be spliced; `nil` while a tap with free space is attached.
    package var spliceDestination: SocketConnection? {
        self.canSplice ? self.transport?.socket : nil
    }

    /// So many bytes were spliced to `spliceDestination`.
    package func didSpliceOutput(_ count: Int) {
        self.recordUntapped()
        self.record.countSent(bytes: count, at: self.loop.now)
    }

    private func sent(_ bytes: RawSpan) {
        if self.isTapped { self.show(.sent, bytes) }
        self.record.countSent(bytes: bytes.byteCount, at: self.loop.now)
    }

    /// Bytes that the kernel took, of everything written on this connection.
    package var sentBytes: UInt64 {
        self.transport?.sentBytes ?? 0
    }

    /// Bytes written on this connection so far; 0 without one.
    package var writtenBytes: UInt64 {
        self.transport?.writtenBytes ?? 0
    }

    /// How long output waited for the peer to read; nothing once the connection is over.
    package var outputStall: OutputStall { self.transport?.outputStall ?? OutputStall() }

    package var queuedBytes: Int {
        self.transport?.queuedBytes ?? 0
    }

    /// Asks for one `outputProgressed` of the relay when all that was written has left.
    package func awaitProgress() {
        self.transport?.awaitProgress()
    }

    package func pauseReading() {
        self.loop.assertOnLoop()
        self.machine.relayReading = .paused
        self.transport?.pauseReading()
    }

    package func resumeReading() {
        self.loop.assertOnLoop()
        self.machine.relayReading = .wanted
        guard self.isRunning else { return }
        self.transport?.resumeReading()
    }

    /// Ends the output after all bytes written.
    package func finishOutput() {
        self.transport?.shutdownOutput()
    }

    /// Ends cleanly after all bytes written; later input is discarded for at most `linger`.
    package func close(linger: Duration) {
        self.transport?.close(linger: linger)
    }

    /// Ends with a reset: the peer must not take it for a clean end.
    package func reset() {
        self.transport?.reset()
    }

    /// Most bytes taken from the kernel in one read.
    package func setReadLimit(_ bytes: Int) {
        self.transport?.readLimit = bytes
    }
}

extension StreamTask {
    /// Attaches a tap. On the loop.
    package func add(_ tap: TaskTap) {
        guard !self.machine.hasEnded else { return }
        LoopTaskMetrics.shared(on: self.loop).add(tap, to: self.record)
        self.isTapped = true
    }

    package func remove(_ tap: TaskTap) {
        self.isTapped = LoopTaskMetrics.shared(on: self.loop).remove(tap, from: self.record)
    }

    /// Whether no tap is attached, or all are full: spliced bytes are counted as skipped.
    var canSplice: Bool {
        !self.isTapped || LoopTaskMetrics.shared(on: self.loop).areTapsFull(at: self.record)
    }

    func recordUntapped() {
        if self.isTapped { LoopTaskMetrics.shared(on: self.loop).recordUntapped(self.record) }
    }

    func show(_ way: TapPiece.Way, _ bytes: RawSpan) {
        LoopTaskMetrics.shared(on: self.loop).recordPiece(self.record, way, .stream, bytes)
    }
}

/// Properties that the control plane shows besides the task's record, on the loop.
extension StreamTask {
    package var stage: TaskStage {
        if self.machine.hasEnded { return .closed }
        guard self.transport != nil || self.securing != nil || self.machine.outlivesTransport else { return .opening }
        return self.machine.peerFinished || self.machine.writingIsOver ? .closing : .open
    }

    /// Whether bytes are passed on instead of queued for `read`.
    package var isRelayed: Bool {
        self.relay != nil
    }

    package var isInputClosed: Bool {
        self.machine.peerFinished || self.machine.readingIsOver
    }

    package var isOutputClosed: Bool {
        self.machine.writingIsOver
    }

    package var isSecure: Bool {
        self.transport is SecureTransport
    }

    /// Writes that wait here for their turn.
    package var waitingWrites: Int {
        self.queuesIfMade?.sends.count ?? 0
    }

    /// Bytes for the peer that the transport was not given yet: of writes that wait here for their turn, and what a relay
    /// keeps.
    package var waitingBytes: Int {
        (self.queuesIfMade?.sends.waitingBytes ?? 0) + (self.relay?.unconsumedBytes ?? 0)
    }
}
