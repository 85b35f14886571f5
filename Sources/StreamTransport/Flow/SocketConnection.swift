import ByteKernels

/// A connected socket on a loop.
///
/// An idle connection owns no buffer: reads use the loop's receive buffer, writes the loop's write buffer, which is
/// sent at the end of the turn. Only bytes that the consumer leaves unread, or that the kernel does not accept, are
/// copied into the connection.
package final class SocketConnection: Transport {
    /// State of the output direction.
    enum Output: Equatable {
        case open
        /// FIN follows the queued bytes.
        case finishing
        case finished
        /// A write met a reset: the peer accepts nothing more. Bytes that it sent before may still be read.
        case broken
    }

    enum Lifecycle: Equatable {
        case open
        /// Everything is sent, then what still arrives is thrown away until the peer's FIN or the linger deadline.
        case closing(linger: Duration)
        case ended(TransportEnd)
        /// The end was reported to the consumer; nothing happens any more.
        case told
        case detached
    }

    package let loop: Loop
    package let descriptor: Descriptor
    /// As the three counts below, stored apart from what other modules see of it: what only this module touches costs
    /// no check of exclusive access.
    var told: (any TransportConsumer)?
    package let peerAddress: SocketAddress?
    private let knownLocalAddress: SocketAddress?
    private var mostRead = Loop.receiveCapacity
    var written: UInt64 = 0
    var sent: UInt64 = 0

    var lifecycle = Lifecycle.open
    var output = Output.open
    /// Bytes the kernel has not accepted yet; changed through `changeQueue` only.
    private var queue = WriteQueue()
    /// Number of bytes in the queue; stored beside it because every write reads it.
    private(set) var waiting = 0
    /// Made when the kernel first took less than it was given.
    private var stall: OutputStallBox?
    var token: UInt64 = 0
    var interest: Interest = .readable
    private var watched = false
    private var inputOpen = true
    /// Our side accepts no more input. Nothing is read until the connection closes, which reads and discards.
    private var refusesInput = false
    var paused: Bool
    var didReceiveReset = false
    /// The consumer looks at bytes at this moment; which of them it leaves is not known yet.
    private var isOffering = false
    private var isTurnEndScheduled = false
    private var isNextTurnScheduled = false
    /// Reading was resumed, and what had been left is still to be offered again.
    private var mustOfferKept = false
    /// The consumer awaits `outputProgressed` once everything is sent.
    var mustReportProgress = false
    /// Reading was resumed from inside the consumer's own `bytesReceived`, by a new owner perhaps: what it leaves is
    /// offered again.
    private var resumedWhileOffering = false
    /// Bytes the consumer left, at the end of this array; changed through `keep` and `takeKept` only.
    private var kept: [UInt8] = []
    private(set) var keptCount = 0
    private var closeTimer: LoopTimer?
    /// Keeps the user timeout from interfering with keep-alive; `nil` if either is off.
    var userTimeoutState: UserTimeoutState?
    var outputActivity = OutputActivity.untouched
    /// Among `UserTimeoutSweep`; below 0 where it is not there.
    var sweepIndex: Int32 = -1
    /// The last read was a long one; the next likely is too.
    private var lastReadWasLong = false

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
        self.paused = paused
        self.kept = unread
        self.keptCount = unread.count
        if !inherits { _ = loop.system.apply(options, to: descriptor) }
        switch loop.watch(descriptor, for: .readable, self) {
        case .success(let token):
            self.token = token
            self.watched = true
        case .failure(let error):
            loop.system.close(descriptor)
            self.lifecycle = .told
            throw error
        }
        if !unread.isEmpty, !paused { self.offerKeptLater() }
        self.userTimeoutState = UserTimeoutState(options, peer: peer)
        self.outputBegan()
    }

    package var consumer: (any TransportConsumer)? {
        get { self.told }
        set { self.told = newValue }
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

    var isLive: Bool {
        switch self.lifecycle {
        case .open, .closing: true
        case .ended, .told, .detached: false
        }
    }

    // MARK: What waits

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
        if self.reads { wanted.insert(.readable) }
        if self.waiting > 0 { wanted.insert(.writable) }
        guard wanted != self.interest || !self.watched else { return }
        self.interest = wanted
        if self.watched {
            self.loop.system.rewatch(self.descriptor, for: wanted, token: self.token)
        } else if !wanted.isEmpty, case .success(let token) = self.loop.watch(self.descriptor, for: wanted, self) {
            self.token = token
            self.watched = true
        }
    }

    func unwatch() {
        guard self.watched else { return }
        self.watched = false
        self.loop.unwatch(self.descriptor, token: self.token)
    }

    func endTurnLater() {
        guard !self.isTurnEndScheduled else { return }
        self.isTurnEndScheduled = true
        self.loop.atTurnEnd(self)
    }
}

extension SocketConnection: Watchable {
    package func ready(_ events: Interest) {
        if events.contains(.writable) { self.drainQueue() }
        guard self.isLive else { return }
        if self.reads {
            if !events.isDisjoint(with: [.readable, .hangUp]) { self.readOnce() }
        } else if events.contains(.hangUp) {
            self.hangUpWhileNotReading()
        } else if events.contains(.readable) {
            // Paused without telling the system, which costs nothing if reading resumes before anything comes.
            self.updateInterest()
        }
    }

    /// Both directions ended while nothing is being read. A failure is reported now; a clean end waits until it is
    /// read, unwatched because epoll would report it in every wait.
    private func hangUpWhileNotReading() {
        if self.didReceiveReset { return self.end(.failed(.reset)) }
        if let error = self.loop.system.connectError(self.descriptor) {
            // The peer finished before it reset: all that it sent can still be read. The next write reports the reset.
            guard error == .brokenPipe, self.inputOpen, !self.refusesInput, self.lifecycle == .open else {
                return self.readFailed(error)
            }
        }
        if case .closing = self.lifecycle { return self.closeIfDone() }
        self.interest = []
        self.unwatch()
    }
}

extension SocketConnection: TurnEndTarget {
    package func nextTurnBegan() {
        self.isNextTurnScheduled = false
        if self.mustOfferKept { self.offerKept() }
    }

    package func turnEnded() {
        self.isTurnEndScheduled = false
        self.flushWriteBuffer()
        self.sendFreshlyQueued()
        self.reportProgressIfDue()
        self.finishOutputIfDue()
        self.closeIfDone()
        self.reportEnd()
    }

    /// Sends output that went to the queue because it did not fit the write buffer: nothing watches for writability
    /// yet.
    private func sendFreshlyQueued() {
        guard self.waiting > 0, self.isLive, !self.interest.contains(.writable) else { return }
        let taken = self.sendFromQueue()
        if taken >= 0 {
            self.countSent(taken)
        } else if !self.mayRetry(taken) {
            return
        }
        self.updateInterest()
        if taken > 0 { self.mustReportProgress = true }
    }

    /// While bytes are queued, `drainQueue` reports progress.
    private func reportProgressIfDue() {
        guard self.mustReportProgress else { return }
        self.mustReportProgress = false
        guard self.lifecycle == .open, self.waiting == 0, self.output != .broken else { return }
        self.told?.outputProgressed()
        // Output that the consumer writes in response leaves in this turn too.
        self.endTurnLater()
    }

    private func finishOutputIfDue() {
        guard self.output == .finishing, self.isLive, self.waiting == 0 else { return }
        self.output = .finished
        // A FIN is to be acknowledged too.
        if self.outputActivity == .resting { self.endIdleOutput() }
        _ = self.loop.system.shutdownOutput(self.descriptor)
    }

    private func reportEnd() {
        guard case .ended(let end) = self.lifecycle else { return }
        self.lifecycle = .told
        let consumer = self.told
        self.told = nil
        consumer?.transportEnded(end)
    }
}

extension SocketConnection: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        guard case .closing = self.lifecycle else { return }
        // Unsent bytes mean that the peer did not get everything: not a clean end.
        self.end(self.waiting == 0 ? .closed : .abandoned)
    }
}

extension SocketConnection {
    package func pauseReading() {
        self.loop.assertOnLoop()
        self.paused = true
    }

    package func resumeReading() {
        self.loop.assertOnLoop()
        guard self.paused, self.lifecycle == .open else { return }
        self.paused = false
        self.resumedWhileOffering = true
        if self.keptCount > 0 { self.offerKeptLater() }
        self.updateInterest()
    }

    private func offerKeptLater() {
        self.mustOfferKept = true
        guard !self.isNextTurnScheduled else { return }
        self.isNextTurnScheduled = true
        self.loop.inNextTurn(self)
    }

    private func offerKept() {
        self.mustOfferKept = false
        guard self.lifecycle == .open, !self.paused, self.keptCount > 0 else { return }
        let count = self.keptCount
        var bytes = self.takeKept()
        let total = bytes.count
        self.isOffering = true
        defer { self.isOffering = false }
        self.resumedWhileOffering = false
        let used = bytes.withMutableRawSpan {
            var offered = $0._mutatingExtracting((total - count)..<total)
            return self.told?.bytesReceived(&offered) ?? count
        }
        guard used < count, self.lifecycle == .open else { return }
        self.keep(bytes, last: count - max(0, used))
        self.offerUnconsumedLater()
    }

    /// Schedules bytes that the consumer left because its share of the turn was used up, or that were left before a new
    /// owner resumed. Other bytes wait for more input.
    private func offerUnconsumedLater() {
        if self.resumedWhileOffering || self.loop.budgetIsSpent, !self.paused { self.offerKeptLater() }
    }

    private func readOnce() {
        // Kept bytes come before new ones and before the end; they are offered after all ready descriptors had their
        // turn.
        if self.mustOfferKept { return }
        let start = self.keptCount
        let room = min(max(self.mostRead, 1), Loop.receiveCapacity - start)
        if self.lastReadWasLong, self.spliceInput(atMost: room) { return }
        guard room > 0 else {
            // A consumer that neither consumes nor pauses while the buffer is full would make no progress ever.
            assertionFailure("consumer left \(start) bytes without pausing")
            return self.end(.failed(.system(.noBuffers)))
        }
        let count = self.loop.receive(self.descriptor, at: start..<(start + room))
        if count > 0 {
            self.lastReadWasLong = count >= self.loop.spliceThreshold
            self.offer(start + count, kept: start)
        } else if count == 0 {
            self.inputEnded()
        } else {
            self.readFailed(SystemError(Int32(truncatingIfNeeded: -count)))
        }
    }

    func offer(_ total: Int, kept start: Int) {
        if case .closing = self.lifecycle { return }
        if start > 0 { self.prependKept() }
        self.resumedWhileOffering = false
        self.isOffering = true
        let used = self.loop.offer(total, to: self.told)
        self.isOffering = false
        guard used < total, self.lifecycle == .open else { return }
        self.keep(self.loop.receiveBuffer.read(max(0, used)..<total) { [UInt8]($0) })
        self.offerUnconsumedLater()
    }

    private func prependKept() {
        let count = self.keptCount
        let before = self.takeKept()
        self.loop.receiveBuffer.lend(0..<count) { buffer in
            before.withRawSpan { buffer.copy($0.extracting((before.count - count)..<before.count), at: 0) }
        }
    }

    private func inputEnded() {
        self.inputOpen = false
        if self.didReceiveReset { return self.end(.failed(.reset)) }
        self.updateInterest()
        switch self.lifecycle {
        case .open: self.told?.inputClosed()
        case .closing: self.closeIfDone()
        case .ended, .told, .detached: break
        }
    }

    private func readFailed(_ error: SystemError) {
        switch error {
        case .wouldBlock, .interrupted: break
        case .reset, .brokenPipe: self.end(.failed(.reset))
        case .timedOut: self.end(.failed(.peerUnresponsive))
        case .hostUnreachable, .networkUnreachable: self.end(.failed(.unreachable(error)))
        default: self.end(.failed(.system(error)))
        }
    }

    package func shutdownInput() {
        self.loop.assertOnLoop()
        guard self.isLive, self.inputOpen, !self.refusesInput else { return }
        self.refusesInput = true
        self.keep([])
        // TCP cannot tell the peer (RFC 9293 §3.6), and would hide its FIN from us; on a Unix socket its writes fail.
        if case .unix = self.peerAddress { _ = self.loop.system.shutdownInput(self.descriptor) }
        self.updateInterest()
    }

    /// Whether what arrives is to be read.
    var reads: Bool {
        self.inputOpen && !self.paused && !(self.refusesInput && self.lifecycle == .open)
    }
}

/// Splicing: bulk data moves from one socket to another without entering the process, where no one reads it on the way.
extension SocketConnection {
    /// In place of a read.
    /// - Returns: whether it was one; else nothing happened.
    private func spliceInput(atMost room: Int) -> Bool {
        guard self.lifecycle == .open, self.keptCount == 0, let consumer = self.told,
            let target = consumer.spliceTarget,
            target.canReceiveSpliced(on: self.loop)
        else { return false }
        guard let passed = self.loop.system.splice(self.descriptor, to: target.descriptor, atMost: room) else {
            return false
        }
        self.lastReadWasLong = passed.received >= self.loop.spliceThreshold
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
        // The system keeps what it was given; were that ever untrue, the peer must not take what follows for the whole.
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
        guard self.lifecycle == .open else { return }
        self.lifecycle = .closing(linger: linger)
        self.keep([])
        self.paused = false
        if self.output == .open { self.output = .finishing }
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
        guard case .closing = self.lifecycle, self.waiting == 0, self.output == .finished || self.output == .broken
        else {
            return
        }
        if !self.inputOpen || self.output == .broken { self.end(.closed) }
    }

    package func reset() {
        self.loop.assertOnLoop()
        guard self.isLive else { return }
        self.end(.abandoned)
    }

    /// Gives the descriptor back and leaves the telling to the end of the turn.
    func end(_ end: TransportEnd) {
        guard self.isLive else { return }
        if self.loop.writeBuffer.owner === self {
            self.loop.writeBuffer.owner = nil
            self.loop.writeBuffer.count = 0
        }
        self.lifecycle = .ended(end)
        self.keep([])
        self.changeQueue { $0.removeAll() }
        if let timer = self.closeTimer { self.loop.disarm(timer) }
        self.outputActivity = .untouched
        self.loop.restingOutputs.remove(self)
        self.unwatch()
        switch end {
        case .closed: self.loop.system.close(self.descriptor)
        case .abandoned, .failed: self.loop.system.reset(self.descriptor)
        }
        self.endTurnLater()
    }

    package func detach() -> DetachedSocket? {
        self.loop.assertOnLoop()
        guard !self.isOffering else { return nil }
        if self.loop.writeBuffer.owner === self { self.flushWriteBuffer() }
        guard self.lifecycle == .open, self.waiting == 0, self.output == .open else { return nil }
        self.unwatch()
        // The new owner gets the socket options as configured.
        self.removeFromSweep()
        self.lifecycle = .detached
        self.told = nil
        let count = self.keptCount
        return DetachedSocket(descriptor: self.descriptor, unread: Array(self.takeKept().suffix(count)))
    }
}
