import ByteKernels
import StreamTransport

extension StreamTask {
    /// Performs the queues' actions, then updates reading and the timer for the operations that wait.
    func advance() {
        guard !self.machine.hasEnded else { return }
        guard self.queuesIfMade != nil else {
            if self.relay == nil, self.securing == nil { self.transport?.pauseReading() }
            return self.disarm()
        }
        self.runReads()
        self.runSends()
        if self.machine.readingIsOver, self.machine.writingIsOver, self.queues.reads.isEmpty, self.queues.sends.isEmpty
        {
            return self.finish(nil)
        }
        guard !self.machine.hasEnded, self.relay == nil, let transport = self.transport else { return self.armTimer() }
        if self.isRunning, self.wantsBytes, self.securing == nil {
            transport.resumeReading()
        } else if self.securing == nil {
            transport.pauseReading()
        }
        self.armTimer()
    }

    private var wantsBytes: Bool {
        let queues = self.queues
        return queues.reads.wantsBytes || queues.reads.readsAhead(queues.readAhead)
    }

    func refuseWrites() {
        self.machine.outputClosed()
        self.queues.sends.fail(.directionClosed)
    }

    func received(earlier bytes: [UInt8]) {
        let count = bytes.withRawSpan { self.queues.reads.bufferAhead($0, limit: .max) }
        self.record.countReceived(bytes: count, at: self.loop.now)
    }

    /// The queues, if there are any and they may run: the connection is open, or will never be.
    private var runnableQueues: StreamQueues? {
        let isOpen = self.transport != nil || self.machine.outlivesTransport
        guard self.machine.hasEnded || (self.isRunning && isOpen && self.securing == nil) else { return nil }
        return self.queuesIfMade
    }

    func runReads() {
        guard let queues = self.runnableQueues else { return }
        while let action = queues.reads.nextAction() { self.perform(action) }
    }

    private func perform(_ action: ReadQueue.Action) {
        switch action {
        case .answer(let completion, let result):
            if case .success(let chunk) = result, chunk.isAtEnd { self.machine.inputConsumed() }
            completion(result)
        case .closeInput:
            self.machine.inputConsumed()
            self.transport?.shutdownInput()
            self.queues.inputObserver?()
        case .barrier(let action): self.perform(action)
        }
    }

    func runSends() {
        guard let queues = self.runnableQueues else { return }
        while let action = self.nextSendAction() { self.perform(action) }
        if queues.sends.awaitsTransport { self.transport?.awaitProgress() }
    }

    private func perform(_ action: SendQueue.Action) {
        switch action {
        case .write(let bytes, let offset): self.writeSlice(bytes, from: offset)
        case .answer(let completion, let result): completion(result)
        case .closeOutput:
            self.machine.outputClosed()
            self.transport?.shutdownOutput()
            self.queues.outputObserver?()
        case .barrier(let action): self.perform(action)
        }
    }

    private func nextSendAction() -> SendQueue.Action? {
        let queued = self.transport?.queuedBytes ?? 0
        return self.queues.sends.nextAction(
            sentBytes: self.transport?.sentBytes ?? 0, mayWrite: queued < StreamTask.outputWatermark)
    }

    /// Passes one slice of the first write to the transport, so that a huge write is not in memory twice.
    private func writeSlice(_ bytes: [UInt8], from offset: Int) {
        guard let transport = self.transport else { return }
        let end = min(bytes.count, offset + StreamTask.outputWatermark)
        bytes.withRawSpan { span in
            transport.writeThrough(span.extracting(offset..<end))
            if self.isTapped { self.show(.sent, span.extracting(offset..<end)) }
        }
        self.record.countSent(bytes: end - offset, at: self.loop.now)
        self.queues.sends.didWrite(end - offset, writtenBytes: transport.writtenBytes)
    }

    private func armTimer() {
        guard self.isRunning, self.relay == nil else { return self.disarm() }
        let deadlines = [self.queues.reads.earliestDeadline, self.queues.sends.earliestDeadline].compactMap(\.self)
        guard let earliest = deadlines.min() else { return self.disarm() }
        self.arm(at: earliest)
    }
}

/// Operations that both queues reach at once: starting TLS, and handing the connection over.
extension StreamTask {
    /// An operation that runs once both queues have reached it.
    enum Barrier {
        case secure(SecureSettings, (Result<Void, TaskFailure>) -> Void)
        case capture((Result<CapturedStreams, TaskFailure>) -> Void)
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

    private func perform(_ action: BarrierAction) {
        switch action {
        case .reached(let number): self.reachedBarrier(number)
        case .failed(let number, let failure): self.failBarrier(number, failure)
        }
    }

    private func reachedBarrier(_ number: UInt64) {
        // Each queue reports; only when the second does is everything before the barrier done.
        guard self.queues.reads.isAtBarrier(number), self.queues.sends.isAtBarrier(number),
            let barrier = self.queues.barriers[number]
        else {
            return
        }
        self.queues.barriers[number] = nil
        switch barrier {
        case .secure(let settings, let completion): self.secure(settings, after: number, completion)
        case .capture(let completion): self.capture(completion)
        }
    }

    /// An operation before the barrier failed in one queue: fails the barrier's operation, and those after it in both.
    private func failBarrier(_ number: UInt64, _ failure: TaskFailure) {
        let barrier = self.queues.barriers.removeValue(forKey: number)
        self.failAfterBarrier(number, failure) {
            switch barrier {
            case .secure(_, let completion)?: completion(.failure(failure))
            case .capture(let completion)?: completion(.failure(failure))
            case nil: break
            }
        }
    }

    /// Operations after a barrier rely on it: if they ran regardless, data meant for TLS would be sent in the clear.
    private func failAfterBarrier(_ number: UInt64, _ failure: TaskFailure, _ report: () -> Void) {
        self.queues.reads.failAfterBarrier(number, failure)
        self.queues.sends.failAfterBarrier(number, failure)
        report()
        self.advance()
    }

    private func liftBarrier(_ number: UInt64) {
        self.queues.reads.liftBarrier(number)
        self.queues.sends.liftBarrier(number)
        self.advance()
    }

    private func secure(
        _ settings: SecureSettings, after barrier: UInt64, _ completion: @escaping (Result<Void, TaskFailure>) -> Void
    ) {
        guard !(self.transport is SecureTransport) else {
            completion(.failure(.usageError("the connection is secure already")))
            return self.liftBarrier(barrier)
        }
        guard let plain = self.transport, !self.machine.readingIsOver, !self.machine.writingIsOver else {
            return self.failAfterBarrier(barrier, .directionClosed) { completion(.failure(.directionClosed)) }
        }
        // The transport has reported the peer's end already, and would not do so again to TLS.
        guard !self.machine.peerFinished else {
            let failure = TaskFailure.secureConnectionFailed(.endOfInputDuringHandshake)
            completion(.failure(failure))
            return self.finish(failure)
        }
        self.securing = SecuringStep(number: barrier, completion: completion)
        self.transport = nil
        let secure = SecureTransport.upgrade(plain, settings: settings, received: self.queues.reads.takeBuffered()) {
            result in
            self.secured(result, after: barrier)
        }
        self.securing?.transport = secure
    }

    private func secured(_ result: Result<SecureTransport, TransportFailure>, after barrier: UInt64) {
        guard !self.machine.hasEnded else {
            if case .success(let transport) = result { transport.reset() }
            return
        }
        let completion = self.securing.take()?.completion
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

    private func capture(_ completion: @escaping (Result<CapturedStreams, TaskFailure>) -> Void) {
        guard let transport = self.transport else { return completion(.failure(.ended)) }
        // Until the new owner is in place nothing may be read, and what this task left is offered to it first.
        transport.pauseReading()
        transport.consumer = nil
        self.transport = nil
        let captured = CapturedStreams(
            transport: transport, unread: self.queues.reads.takeBuffered(), inputClosed: self.machine.peerFinished,
            outputClosed: self.machine.writingIsOver)
        self.finish(nil)
        completion(.success(captured))
    }
}

extension StreamTask: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.queues.reads.expire(at: self.loop.now)
        self.queues.sends.expire(at: self.loop.now)
        // Before the connection is open the queues do not run, but deadlines do.
        if self.transport == nil, !self.machine.outlivesTransport { self.answerFailed() }
        self.advance()
    }

    private func answerFailed() {
        while let failed = self.queues.reads.nextExpiredAction() { self.perform(failed) }
        while let failed = self.queues.sends.nextExpiredAction() { self.perform(failed) }
    }
}

extension StreamTask: TransportConsumer {
    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        if let relay = self.relay {
            let used = relay.bytesReceived(&bytes)
            if self.isTapped, used > 0 { self.show(.received, bytes.bytes.extracting(0..<min(used, bytes.byteCount))) }
            self.record.countReceived(bytes: used, at: self.loop.now)
            return used
        }
        var used = 0
        while used < bytes.byteCount {
            let taken = self.queues.reads.take(bytes.bytes.extracting(used..<bytes.byteCount))
            if self.isTapped, taken > 0 { self.show(.received, bytes.bytes.extracting(used..<(used + taken))) }
            used += taken
            // Counted before any observer looks.
            if taken > 0 { self.record.countReceived(bytes: taken, at: self.loop.now) }
            self.runReads()
            if taken == 0 { break }
        }
        if used < bytes.byteCount, !self.machine.hasEnded, self.queues.readAhead > 0 {
            let rest = bytes.bytes.extracting(used..<bytes.byteCount)
            let ahead = self.queues.reads.bufferAhead(rest, limit: self.queues.readAhead)
            if ahead > 0 { self.record.countReceived(bytes: ahead, at: self.loop.now) }
            used += ahead
        }
        self.advance()
        return used
    }

    package var spliceTarget: SocketConnection? {
        self.canSplice ? self.relay?.spliceTarget : nil
    }

    package func spliced(_ count: Int, queued: Int) {
        self.recordUntapped()
        self.record.countReceived(bytes: count, at: self.loop.now)
        self.relay?.spliced(count, queued: queued)
    }

    package func inputClosed() {
        self.machine.inputClosed()
        if let relay = self.relay { return relay.inputClosed() }
        self.queues.inputObserver?()
        self.queues.reads.inputClosed()
        self.advance()
    }

    package func outputProgressed() {
        if let relay = self.relay {
            // Writes requested by others than the relay.
            if self.queuesIfMade != nil { self.runSends() }
            return relay.outputProgressed()
        }
        self.advance()
    }

    package var keepsUnreadInput: Bool {
        if let relay = self.relay { return relay.keepsUnreadInput }
        return !self.machine.readingIsOver
    }

    package func outputFailed() {
        if let relay = self.relay { return relay.outputFailed() }
        self.queuesIfMade?.sends.fail(TaskFailure(.reset))
        self.advance()
    }

    package func transportEnded(_ end: TransportEnd) {
        self.transport = nil
        let relay = self.relay.take()
        if case .readOn = self.machine.transportEnded(end, isRelayed: relay != nil) { return self.advance() }
        switch end {
        case .closed: self.finish(nil)
        case .abandoned: self.finish(.cancelled)
        case .failed(let failure):
            let failure = TaskFailure(failure)
            if !self.machine.readingIsOver { self.queuesIfMade?.reads.connectionFailed(failure) }
            self.finish(failure)
        }
        relay?.transportEnded(end)
    }
}

/// State that a stream task needs only for queued reads and writes; a relayed one never makes it.
final class StreamQueues {
    var reads = ReadQueue()
    var sends = SendQueue()
    var barriers: [UInt64: StreamTask.Barrier] = [:]
    /// Most bytes taken from the transport without a read; 0 leaves all in the kernel.
    var readAhead = 0
    /// Called when a direction closed cleanly: reading by either end, writing by ours.
    var inputObserver: (() -> Void)?
    var outputObserver: (() -> Void)?

    func forgetObservers() {
        self.inputObserver = nil
        self.outputObserver = nil
    }
}

/// TLS that is being started on a stream task's connection.
struct SecuringStep {
    let number: UInt64
    let completion: (Result<Void, TaskFailure>) -> Void
    /// `nil` until the handshake has begun.
    var transport: SecureTransport?
}

/// A connection taken out of its task: the receiver is now the transport's consumer and owner.
package struct CapturedStreams {
    package let transport: any Transport
    /// Received bytes that precede those still in the transport.
    package let unread: [UInt8]
    /// The peer's end of input was seen already.
    package let inputClosed: Bool
    /// Writing was closed, or never permitted.
    package let outputClosed: Bool
}
