import ByteKernels

/// A connected socket on a loop.
///
/// An idle connection owns no buffer: reads use the loop's receive buffer, writes the loop's write buffer, which is
/// sent at the end of the turn. Only bytes that the consumer leaves unread, or that the kernel does not accept, are
/// copied into the connection.
package final class SocketConnection: Transport {
    /// What the loop watches the descriptor for.
    private struct Watch {
        let token: UInt64
        var interest: Interest
    }

    // First what each read and write touches, so that it is in few cache lines.
    package let loop: Loop
    package let descriptor: Descriptor
    var machine: ConnectionMachine
    var turnEndRequest = TurnEndRequest.none
    var outputActivity = OutputActivity.untouched
    /// Number of bytes in the queue; stored separately because every write reads it.
    private(set) var waiting = 0
    /// As the count below, stored apart from what other modules see of it: what only this module touches costs no check of
    /// exclusive access.
    var currentConsumer: (any TransportConsumer)?
    var written: UInt64 = 0
    var sent: UInt64 = 0
    private var mostRead = Loop.receiveCapacity
    private(set) var keptCount = 0
    /// Bytes the consumer left, at the end of this array; changed through `keep` and `takeKept` only.
    private var kept: [UInt8] = []
    /// `nil` while the descriptor is not watched.
    private var watch: Watch?
    /// Bytes the kernel has not accepted yet; changed through `changeQueue` only.
    private var queue = WriteQueue()
    /// Made when the kernel first took less than it was given.
    private var stall: OutputStallBox?
    private var closeTimer: LoopTimer?
    /// Keeps the user timeout from interfering with keep-alive; `nil` if either is off.
    var userTimeoutState: UserTimeoutState?
    /// Among `UserTimeoutSweep`; below 0 where it is not there.
    var sweepIndex: Int32 = -1
    package let peerAddress: SocketAddress?
    private let knownLocalAddress: SocketAddress?

    package var socket: SocketConnection? { self }

    /// Takes ownership of a connected, non-blocking `descriptor` and reads from it unless `paused`.
    /// - Parameters:
    ///   - local: our own address, where it is known.
    ///   - options: those that the descriptor is to have.
    ///   - inherits: whether it has them already, from its listener.
    ///   - unread: bytes read from it already, offered first.
    /// - Throws: `SystemError` when it cannot be watched; the descriptor is then closed.
    package init(
        adopting descriptor: Descriptor, peer: SocketAddress?, local: SocketAddress? = nil, on loop: Loop,
        options: SocketOptions = SocketOptions(), inherits: Bool = false, paused: Bool = false, unread: [UInt8] = []
    ) throws(SystemError) {
        self.loop = loop
        self.descriptor = descriptor
        self.peerAddress = peer
        self.knownLocalAddress = local
        self.machine = ConnectionMachine(paused: true)
        self.kept = unread
        self.keptCount = unread.count
        if !inherits { _ = loop.system.apply(options, to: descriptor) }
        switch loop.watch(descriptor, for: .readable, self) {
        case .success(let token):
            self.watch = Watch(token: token, interest: .readable)
        case .failure(let error):
            loop.system.close(descriptor)
            self.machine.openFailed()
            throw error
        }
        if !paused { self.resumeReading() }
        self.userTimeoutState = UserTimeoutState(options, peer: peer)
        self.outputBegan()
    }

    package var consumer: (any TransportConsumer)? {
        get { self.currentConsumer }
        set { self.currentConsumer = newValue }
    }

    package var readLimit: Int {
        get { self.mostRead }
        set { self.mostRead = newValue }
    }

    package var delivery: OutputDelivery? {
        guard self.isLive else { return nil }
        let hold = self.loop.system.outputHold(of: self.descriptor)
        return self.loop.system.unacknowledgedBytes(of: self.descriptor).map {
            OutputDelivery(
                written: Int64(truncatingIfNeeded: self.written),
                acknowledged: Int64(truncatingIfNeeded: self.sent) - Int64($0),
                isHeldUp: self.queuedBytes > 0 || (hold?.unsent ?? 0) > 0, window: hold?.window)
        }
    }

    package func limitUnsent(to limit: Int) {
        guard self.isLive else { return }
        if case .unix? = self.peerAddress { return }
        self.loop.system.setUnsentLimit(limit, of: self.descriptor)
    }

    package var writtenBytes: UInt64 { self.written }
    package var sentBytes: UInt64 { self.sent }

    package var localAddress: SocketAddress? {
        self.isLive ? self.knownLocalAddress ?? self.loop.system.localAddress(self.descriptor) : nil
    }

    var isLive: Bool { self.machine.isLive }

    // MARK: Write queue

    func changeQueue<R>(_ change: (inout WriteQueue) -> R) -> R {
        defer {
            let waited = self.waiting > 0
            self.waiting = self.queue.count
            if waited != (self.waiting > 0) { self.updateStall() }
        }
        return change(&self.queue)
    }

    private func updateStall() {
        let now = self.loop.now
        guard self.waiting > 0 else {
            self.stall?.value.ended(at: now)
            return
        }
        let stall = self.stall ?? OutputStallBox()
        stall.value.begins(at: now)
        self.stall = stall
    }

    package var outputStall: OutputStall { self.stall?.value ?? OutputStall() }

    private func keep(_ bytes: [UInt8]) {
        self.keep(bytes, last: bytes.count)
    }

    /// Keeps the last `count` of `bytes`, in place unless most of them were used: they are offered again without being
    /// copied each time, and a few bytes do not hold much memory.
    private func keep(_ bytes: [UInt8], last count: Int) {
        self.keptCount = count
        self.kept = count < bytes.count / 4 ? Array(bytes.suffix(count)) : bytes
    }

    /// - Returns: bytes of which the last `keptCount` (before the call) are kept; leaves none.
    private func takeKept() -> [UInt8] {
        guard self.keptCount > 0 else { return [] }
        let bytes = self.kept
        self.keep([])
        return bytes
    }

    // MARK: Watching

    func updateInterest() {
        guard self.isLive else { return }
        var wanted: Interest = []
        if self.machine.isReading { wanted.insert(.readable) }
        if self.waiting > 0 { wanted.insert(.writable) }
        if let watch = self.watch {
            guard wanted != watch.interest else { return }
            self.watch = Watch(token: watch.token, interest: wanted)
            self.loop.system.rewatch(self.descriptor, for: wanted, token: watch.token)
        } else if !wanted.isEmpty, case .success(let token) = self.loop.watch(self.descriptor, for: wanted, self) {
            self.watch = Watch(token: token, interest: wanted)
        }
    }

    private var isWatchedForWriting: Bool { self.watch?.interest.contains(.writable) ?? false }

    func unwatch() {
        guard let watch = self.watch else { return }
        self.watch = nil
        self.loop.unwatch(self.descriptor, token: watch.token)
    }

    func endTurnLater() {
        guard self.turnEndRequest == .none else { return }
        self.turnEndRequest = .requested
        self.loop.atTurnEnd(self)
    }
}

extension SocketConnection: Watchable {
    package func ready(_ events: Interest) {
        if events.contains(.writable) { self.drainQueue() }
        guard self.isLive else { return }
        if self.machine.isReading {
            if !events.isDisjoint(with: [.readable, .hangUp]) { self.readOnce() }
        } else if events.contains(.hangUp) {
            self.hangUpWhileNotReading()
        } else if events.contains(.readable) {
            // Paused without telling the system, which costs nothing if reading resumes before anything comes.
            self.updateInterest()
        }
    }

    /// Whether input is left unread that the consumer wants although the output is broken.
    var keepsUnreadInput: Bool {
        guard self.currentConsumer?.keepsUnreadInput == true else { return false }
        return self.keptCount > 0 || self.loop.system.hasUnreadInput(self.descriptor)
    }

    private func hangUpWhileNotReading() {
        // Taking the socket's error clears it.
        let isBroken = self.machine.output == .broken
        let error = isBroken ? nil : self.loop.system.connectError(self.descriptor)
        let keepsInput = isBroken && self.keepsUnreadInput
        switch self.machine.hungUp(outputIsSent: self.waiting == 0, error: error, keepsInput: keepsInput) {
        case .unwatch: self.unwatch()
        case .ignore: break
        case .end(let end): self.end(end)
        }
    }
}

extension SocketConnection: TurnEndTarget {
    package func nextTurnBegan() {
        switch self.machine.gate.turnBegan() {
        case .ignore: break
        case .offerKept: self.offerKept()
        }
    }

    package func turnEnded() {
        let reportsProgress = self.turnEndRequest == .requestedToReportProgress
        self.turnEndRequest = .none
        self.flushWriteBuffer()
        if self.sendFreshlyQueued() || reportsProgress { self.reportProgress() }
        if self.machine.takeBrokenOutput() { self.currentConsumer?.outputFailed() }
        self.finishOutputIfDue()
        self.closeIfDone()
        self.reportEnd()
    }

    /// Sends output that went to the queue because it did not fit the write buffer: nothing watches for writability
    /// yet.
    /// - Returns: whether the kernel took any.
    private func sendFreshlyQueued() -> Bool {
        guard self.waiting > 0, self.isLive, !self.isWatchedForWriting else { return false }
        let taken = self.sendFromQueue()
        if taken >= 0 {
            self.countSent(taken)
        } else if !self.mayRetry(taken) {
            return false
        }
        self.updateInterest()
        return taken > 0
    }

    /// While bytes are queued, `drainQueue` reports progress.
    private func reportProgress() {
        guard self.machine.isOpen, self.waiting == 0, self.machine.output != .broken else { return }
        self.currentConsumer?.outputProgressed()
        // Output that the consumer writes in response leaves in this turn too.
        self.endTurnLater()
    }

    private func finishOutputIfDue() {
        guard self.machine.finishOutput(outputIsSent: self.waiting == 0) else { return }
        // A FIN is to be acknowledged too.
        if self.outputActivity == .idle { self.endIdleOutput() }
        _ = self.loop.system.shutdownOutput(self.descriptor)
    }

    private func reportEnd() {
        guard let end = self.machine.takeEnd() else { return }
        let consumer = self.currentConsumer
        self.currentConsumer = nil
        consumer?.transportEnded(end)
    }
}

extension SocketConnection: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        if let end = self.machine.lingerPassed(outputIsSent: self.waiting == 0) { self.end(end) }
    }
}

extension SocketConnection {
    package func pauseReading() {
        self.loop.assertOnLoop()
        self.machine.gate.pause()
    }

    package func resumeReading() {
        self.loop.assertOnLoop()
        switch self.machine.gate.resume(keepsBytes: self.keptCount > 0) {
        case .ignore: return
        case .read: break
        case .readAndRequestTurn: self.loop.inNextTurn(self)
        }
        self.updateInterest()
    }

    private func offerKept() {
        let count = self.keptCount
        var bytes = self.takeKept()
        let total = bytes.count
        let used = bytes.withMutableRawSpan {
            var offered = $0._mutatingExtracting((total - count)..<total)
            return self.currentConsumer?.bytesReceived(&offered) ?? count
        }
        let left = count - max(0, used)
        if self.endOffer(leaving: left) { self.keep(bytes, last: left) }
    }

    /// - Returns: whether the bytes that the consumer left, which are so many, are to be kept.
    private func endOffer(leaving left: Int) -> Bool {
        switch self.machine.gate.offerEnded(leavesBytes: left > 0, budgetIsSpent: self.loop.budgetIsSpent) {
        case .keep: return left > 0
        case .keepAndRequestTurn:
            self.loop.inNextTurn(self)
            return true
        case .drop: return false
        }
    }

    private func readOnce() {
        // Kept bytes come before new ones and before the end; they are offered after all ready descriptors had their
        // turn.
        guard self.machine.admitsInput else { return }
        let start = self.keptCount
        let room = min(max(self.mostRead, 1), Loop.receiveCapacity - start)
        if self.machine.expectsBulk, self.spliceInput(atMost: room) { return }
        guard room > 0 else {
            // A consumer that neither consumes nor pauses while the buffer is full would make no progress ever.
            assertionFailure("consumer left \(start) bytes without pausing")
            return self.end(.failed(.system(.noBuffers)))
        }
        let count = self.loop.receive(self.descriptor, at: start..<(start + room))
        if count > 0 {
            self.machine.bytesReceived(isBulk: count >= self.loop.spliceThreshold)
            self.offer(start + count, kept: start)
        } else if count == 0 {
            self.inputEnded()
        } else {
            self.readFailed(SystemError(Int32(truncatingIfNeeded: -count)))
        }
    }

    private func offer(_ total: Int, kept start: Int) {
        if self.machine.isClosing { return }
        if start > 0 { self.prependKept() }
        self.machine.gate.offerBegan()
        let used = max(0, self.loop.offer(total, to: self.currentConsumer))
        guard self.endOffer(leaving: max(0, total - used)) else { return }
        self.keep(self.loop.receiveBuffer.read(used..<total) { [UInt8]($0) })
    }

    private func prependKept() {
        let count = self.keptCount
        let before = self.takeKept()
        self.loop.receiveBuffer.lend(0..<count) { buffer in
            before.withRawSpan { buffer.copy($0.extracting((before.count - count)..<before.count), at: 0) }
        }
    }

    private func inputEnded() {
        switch self.machine.inputFinished(outputIsSent: self.waiting == 0) {
        case .ignore: self.updateInterest()
        case .reportInputClosed:
            self.updateInterest()
            self.currentConsumer?.inputClosed()
        case .end(let end): self.end(end)
        }
    }

    private func readFailed(_ error: SystemError) {
        if let end = ConnectionMachine.end(readFailure: error) { self.end(end) }
    }

    package func shutdownInput() {
        self.loop.assertOnLoop()
        guard self.machine.shutdownInput() else { return }
        self.keep([])
        // Nothing is left that the connection could be of use for.
        if self.machine.output == .broken { return self.end(.failed(.reset)) }
        // TCP cannot tell the peer (RFC 9293 §3.6), and would hide its FIN from us; on a Unix socket its writes fail.
        if case .unix = self.peerAddress { _ = self.loop.system.shutdownInput(self.descriptor) }
        self.updateInterest()
    }
}

/// Splicing: bulk data moves from one socket to another without entering the process, where no one reads it on the way.
extension SocketConnection {
    /// In place of a read.
    /// - Returns: whether it was one; else nothing happened.
    private func spliceInput(atMost room: Int) -> Bool {
        guard self.machine.isOpen, self.keptCount == 0, let consumer = self.currentConsumer,
            let target = consumer.spliceTarget,
            target.canReceiveSpliced(on: self.loop)
        else { return false }
        guard let passed = self.loop.system.splice(self.descriptor, to: target.descriptor, atMost: room) else {
            return false
        }
        self.machine.bytesReceived(isBulk: passed.received >= self.loop.spliceThreshold)
        if passed.received > 0 {
            target.didSplice(passed)
            consumer.spliced(passed.received, queued: target.queuedBytes)
        } else if passed.received == 0 {
            self.inputEnded()
        } else {
            self.readFailed(SystemError(Int32(truncatingIfNeeded: -passed.received)))
        }
        return true
    }

    /// Whether nothing is queued or in the write buffer ahead of spliced bytes.
    private func canReceiveSpliced(on loop: Loop) -> Bool {
        guard self.loop === loop else { return false }
        if loop.writeBuffer.owner === self { self.flushWriteBuffer() }
        return self.waiting == 0 && self.acceptsOutput
    }

    /// Counts what passed, and queues what the kernel did not take.
    private func didSplice(_ passed: SplicedBytes) {
        self.written &+= UInt64(passed.received)
        self.countSent(max(0, passed.sent))
        guard passed.sent < passed.received else { return }
        let mayRetry = passed.sent >= 0 || self.mayRetry(passed.sent)
        var rest = passed.received - max(0, passed.sent)
        while rest > 0 {
            let count = self.loop.drainSplicePipe(atMost: rest)
            guard count > 0 else { break }
            rest -= count
            if mayRetry { self.queueSpliced(count) }
        }
        // The pipe keeps all bytes; if some were lost after all, the connection fails, so that the peer sees no gap.
        if rest > 0 { self.end(.failed(.system(.noBuffers))) }
        self.updateInterest()
    }

    private func queueSpliced(_ count: Int) {
        self.loop.receiveBuffer.read(0..<count) { bytes in self.changeQueue { $0.append(bytes) } }
    }
}

extension SocketConnection {
    package func close(linger: Duration) {
        self.loop.assertOnLoop()
        guard self.machine.close(linger: linger) else { return }
        self.keep([])
        self.armCloseTimer(linger)
        self.updateInterest()
        self.endTurnLater()
    }

    func armCloseTimer(_ linger: Duration) {
        let timer = self.closeTimer ?? LoopTimer()
        self.closeTimer = timer
        self.loop.arm(timer, after: linger, target: self)
    }

    private func closeIfDone() {
        if let end = self.machine.closingEnd(outputIsSent: self.waiting == 0) { self.end(end) }
    }

    package func reset() {
        self.loop.assertOnLoop()
        self.end(.abandoned)
    }

    /// Closes the descriptor; the end of the turn reports the end.
    func end(_ end: TransportEnd) {
        guard self.machine.end(end) else { return }
        if self.loop.writeBuffer.owner === self {
            self.loop.writeBuffer.owner = nil
            self.loop.writeBuffer.count = 0
        }
        self.keep([])
        self.changeQueue { $0.removeAll() }
        if let timer = self.closeTimer { self.loop.disarm(timer) }
        self.outputActivity = .untouched
        self.loop.userTimeoutSweep.remove(self)
        self.unwatch()
        switch end {
        case .closed: self.loop.system.close(self.descriptor)
        case .abandoned, .failed: self.loop.system.reset(self.descriptor)
        }
        self.endTurnLater()
    }

    package func detach() -> DetachedSocket? {
        self.loop.assertOnLoop()
        guard !self.machine.gate.isOffering else { return nil }
        if self.loop.writeBuffer.owner === self { self.flushWriteBuffer() }
        guard self.machine.detach(outputIsSent: self.waiting == 0) else { return nil }
        self.unwatch()
        // The new owner gets the socket options as configured.
        self.removeFromSweep()
        self.currentConsumer = nil
        let count = self.keptCount
        return DetachedSocket(descriptor: self.descriptor, unread: Array(self.takeKept().suffix(count)))
    }
}
