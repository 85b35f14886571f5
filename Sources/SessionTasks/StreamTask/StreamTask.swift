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

    /// An operation that runs once both queues have reached it.
    enum Barrier {
        case secure(SecureSettings, (Result<Void, TaskFailure>) -> Void)
        case capture((Result<CapturedStreams, TaskFailure>) -> Void)
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
    package init(adopting transport: any Transport) {
        self.record = TaskRecord(state: .running)
        self.loop = transport.loop
        self.suspensions = 0
        self.transportOpened(transport)
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

    // MARK: Life, on the loop

    package func resumeOnLoop() {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded, self.suspensions > 0 else { return }
        self.suspensions -= 1
        guard self.suspensions == 0 else { return }
        self.record.state = .running
        let away = self.suspendedAt.duration(to: self.loop.now)
        self.queuesIfMade?.reads.postpone(by: away)
        self.queuesIfMade?.sends.postpone(by: away)
        if let target = self.target {
            self.target = nil
            self.open(target.value)
        }
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

    private func transportOpened(_ transport: any Transport) {
        self.transport = transport
        self.record.isConnected = true
        transport.consumer = self
        let metadata = (transport as? SecureTransport)?.metadata
        self.record.update {
            $0.localAddress = transport.localAddress
            $0.peerAddress = transport.peerAddress
            $0.tls = metadata
        }
        self.record.markOpened(at: self.loop.now)
        let observer = self.openObserver
        self.openObserver = nil
        observer?()
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

    /// Ends the task: answers everything that waits, resets the transport if it still lives.
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
        if let transport = self.transport {
            self.transport = nil
            transport.consumer = nil
            if failure != nil { transport.reset() } else { transport.close(linger: .seconds(5)) }
        }
        let observer = self.endObserver
        self.endObserver = nil
        observer?(failure)
    }

    private func failWaiting(_ failure: TaskFailure) {
        self.queuesIfMade?.reads.fail(failure)
        self.queuesIfMade?.sends.fail(failure)
        let securing = self.securing
        self.securing = nil
        securing?.completion(.failure(failure))
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
            .read(
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
            .send(
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
        self.advance()
    }

    /// Starts TLS in the role of the settings' context after all operations requested before; later ones wait, and fail
    /// if TLS does not begin.
    /// - Returns: a number for withdrawing it.
    @discardableResult
    package func startSecure(
        _ settings: SecureSettings, _ completion: @escaping (Result<Void, TaskFailure>) -> Void
    ) -> UInt64 {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else {
            completion(.failure(self.record.read { $0.failure } ?? .ended))
            return 0
        }
        return self.place(.secure(settings, completion))
    }

    /// Cancels a start of TLS that has not completed, and with it the whole task: later operations must not go out in
    /// the clear.
    package func withdrawSecuring(_ number: UInt64) {
        self.loop.assertOnLoop()
        guard self.queuesIfMade?.barriers[number] != nil || self.securing?.number == number else { return }
        self.cancelOnLoop()
    }

    /// Hands the connection over after all operations requested before; the task is then complete.
    package func captureStreams(_ completion: @escaping (Result<CapturedStreams, TaskFailure>) -> Void) {
        self.loop.assertOnLoop()
        guard !self.machine.hasEnded else { return completion(.failure(self.record.read { $0.failure } ?? .ended)) }
        self.place(.capture(completion))
    }

    @discardableResult
    private func place(_ barrier: Barrier) -> UInt64 {
        let number = self.nextNumber()
        self.queues.barriers[number] = barrier
        self.queues.reads.append(.barrier(number: number))
        self.queues.sends.append(.barrier(number: number))
        self.advance()
        return number
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

    // MARK: Behind a barrier

    func secure(
        _ settings: SecureSettings, behind barrier: UInt64, _ completion: @escaping (Result<Void, TaskFailure>) -> Void
    ) {
        guard let plain = self.transport, !(plain is SecureTransport) else {
            completion(.failure(.usageError("the connection is secure already")))
            return self.liftBarrier(barrier)
        }
        guard !self.machine.readingIsOver, !self.machine.writingIsOver else {
            return self.failAfterBarrier(barrier, .directionClosed) { completion(.failure(.directionClosed)) }
        }
        self.securing = SecuringStep(number: barrier, completion: completion)
        self.transport = nil
        let secure = SecureTransport.upgrade(plain, settings: settings, received: self.queues.reads.takeBuffered()) {
            result in
            self.secured(result, behind: barrier)
        }
        self.securing?.transport = secure
    }

    private func secured(_ result: Result<SecureTransport, TransportFailure>, behind barrier: UInt64) {
        guard !self.machine.hasEnded else {
            if case .success(let transport) = result { transport.reset() }
            return
        }
        let completion = self.securing?.completion
        self.securing = nil
        switch result {
        case .success(let transport):
            self.transportOpened(transport)
            completion?(.success(()))
            self.liftBarrier(barrier)
        case .failure(let failure):
            completion?(.failure(TaskFailure(failure)))
            self.finish(TaskFailure(failure))
        }
    }

    func capture(_ completion: @escaping (Result<CapturedStreams, TaskFailure>) -> Void) {
        guard let transport = self.transport else { return completion(.failure(.ended)) }
        // Until the new owner is in place nothing may be read, and what this task left is offered to it first.
        transport.pauseReading()
        transport.consumer = nil
        self.transport = nil
        let captured = CapturedStreams(
            transport: transport, unread: self.queues.reads.takeBuffered(), inputClosed: self.machine.peerFinished)
        self.finish(nil)
        completion(.success(captured))
    }
}

/// The task from any thread.
extension StreamTask {
    /// Reads the next bytes of the stream.
    ///
    /// Cancelling the awaiting Swift task withdraws the read if it was not answered yet; bytes that had come for it go
    /// to the next read.
    /// - Parameters:
    ///   - minimum: the read waits until so many bytes are there, or the stream ends; 0 counts as 1.
    ///   - maximum: at least 1 and not below `minimum`.
    ///   - timeout: counted from now, without the time in suspension; `nil` waits without limit. When it passes, this
    ///     read and all reads after it fail.
    /// - Throws: `TaskFailure`.
    public func read(minimum: Int = 1, maximum: Int, timeout: Duration? = nil) async throws(TaskFailure) -> Chunk {
        try await self.perform { task, completion in
            task.read(minimum: minimum, maximum: maximum, timeout: timeout, completion)
        } withdraw: { task, number in
            task.withdrawRead(number)
        }
    }

    /// Writes all of `bytes` after earlier writes; returns when the kernel has accepted every byte, which does not mean
    /// that the peer has received them.
    ///
    /// Cancelling the awaiting Swift task withdraws the write if it has not started; one that has started is completed.
    /// - Throws: `TaskFailure`.
    public func write(_ bytes: [UInt8], timeout: Duration? = nil) async throws(TaskFailure) {
        try await self.perform { task, completion in
            task.write(bytes, timeout: timeout, completion)
        } withdraw: { task, number in
            task.withdrawWrite(number)
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
        try await self.perform { task, completion in
            task.startSecure(settings, completion)
        } withdraw: { task, number in
            task.withdrawSecuring(number)
        }
    }

    private func perform<R: Sendable>(
        _ begin: @escaping @Sendable (StreamTask, @escaping (Result<R, TaskFailure>) -> Void) -> UInt64,
        withdraw: @escaping @Sendable (StreamTask, UInt64) -> Void
    ) async throws(TaskFailure) -> R {
        let waiting = LoopIsolated(AwaitedOperation(), on: self.loop)
        let result: Result<R, TaskFailure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.execute { operation in
                    guard operation.mayBegin() else { return continuation.resume(returning: .failure(.cancelled)) }
                    let number = begin(self) { continuation.resume(returning: $0) }
                    operation.began(number)
                }
            }
        } onCancel: {
            waiting.execute { operation in
                guard let number = operation.cancel() else { return }
                withdraw(self, number)
            }
        }
        return try result.get()
    }
}

/// A connection taken out of its task: the receiver is now the transport's consumer and owner.
package struct CapturedStreams {
    package let transport: any Transport
    /// Received, and first in line.
    package let unread: [UInt8]
    /// The peer's end of input was seen already.
    package let inputClosed: Bool
}
