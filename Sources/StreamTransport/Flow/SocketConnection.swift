/// A connected socket on a loop.
///
/// An idle connection owns no buffer: reads land in the loop's, writes are gathered in the loop's and leave at the end of the turn. Only
/// what a consumer leaves unread, or the kernel does not take, is copied into the connection.
package final class SocketConnection: Transport {
    /// What is left to do for the output direction.
    enum Output: Equatable {
        case open
        /// FIN follows the queued bytes.
        case finishing
        case finished
        /// The peer will take nothing more: a write met a reset. What it sent before may still be read.
        case broken
    }

    enum Life: Equatable {
        case open
        /// Everything is sent, then what still arrives is thrown away until the peer's FIN or the linger deadline.
        case closing(linger: Duration)
        case ended(TransportEnd)
        /// The consumer was told; nothing happens any more.
        case told
        case surrendered
    }

    package let loop: Loop
    package let descriptor: Descriptor
    package var consumer: (any TransportConsumer)?
    package let peerAddress: SocketAddress?
    package var readLimit = Loop.receiveCapacity
    package internal(set) var writtenBytes: UInt64 = 0
    package internal(set) var sentBytes: UInt64 = 0

    var life = Life.open
    var output = Output.open
    var queue = WriteQueue()
    private var token: UInt64 = 0
    private var interest: Interest = .readable
    private var watched = false
    private var inputOpen = true
    /// Our side wants no more input. Nothing is read until the connection closes, which reads on to throw away.
    private var refusesInput = false
    private var paused: Bool
    private var sawReset = false
    private var awaitsTurnEnd = false
    private var awaitsNextTurn = false
    /// Reading was resumed from inside the consumer's own `bytesReceived`, by a new owner perhaps: what it leaves is offered again.
    private var resumedWhileOffering = false
    private var kept: [UInt8] = []
    private var closeTimer: LoopTimer?

    /// Takes ownership of a connected, non-blocking `descriptor` and reads from it unless `paused`.
    /// - Parameter unread: bytes read from it already, offered first.
    /// - Throws: `SystemError` when it cannot be watched; the descriptor is then closed.
    package init(
        adopting descriptor: Descriptor, peer: SocketAddress?, on loop: Loop, options: SocketOptions = SocketOptions(),
        paused: Bool = false, unread: [UInt8] = []
    ) throws(SystemError) {
        self.loop = loop
        self.descriptor = descriptor
        self.peerAddress = peer
        self.paused = paused
        self.kept = unread
        _ = loop.system.apply(options, to: descriptor)
        switch loop.watch(descriptor, for: .readable, self) {
        case .success(let token):
            self.token = token
            self.watched = true
        case .failure(let error):
            loop.system.close(descriptor)
            self.life = .told
            throw error
        }
        if !unread.isEmpty, !paused { self.offerKeptLater() }
    }

    package var localAddress: SocketAddress? {
        self.isLive ? self.loop.system.localAddress(self.descriptor) : nil
    }

    var isLive: Bool {
        switch self.life {
        case .open, .closing: true
        case .ended, .told, .surrendered: false
        }
    }

    // MARK: Reading

    package func pauseReading() {
        self.paused = true
    }

    package func resumeReading() {
        guard self.paused, self.life == .open else { return }
        self.paused = false
        self.resumedWhileOffering = true
        if !self.kept.isEmpty { self.offerKeptLater() }
        self.updateInterest()
    }

    private func offerKeptLater() {
        guard !self.awaitsNextTurn else { return }
        self.awaitsNextTurn = true
        self.loop.inNextTurn(self)
    }

    private func offerKept() {
        guard self.life == .open, !self.paused, !self.kept.isEmpty else { return }
        var bytes = self.kept
        self.kept = []
        let total = bytes.count
        self.resumedWhileOffering = false
        let used = unsafe bytes.withUnsafeMutableBytes { buffer in
            var span = unsafe MutableRawSpan(_unsafeBytes: buffer)
            return self.consumer?.bytesReceived(&span) ?? total
        }
        guard used < total, self.life == .open else { return }
        bytes.removeFirst(max(0, used))
        self.kept = bytes
        if self.resumedWhileOffering, !self.paused { self.offerKeptLater() }
    }

    private func readOnce() {
        let start = self.kept.count
        let room = min(max(self.readLimit, 1), Loop.receiveCapacity - start)
        guard room > 0 else {
            // A consumer that neither takes nor pauses at a full buffer can never go on.
            assertionFailure("consumer left \(start) bytes without pausing")
            return self.end(.failed(.system(.noBuffers)))
        }
        let target = unsafe UnsafeMutableRawBufferPointer(rebasing: self.loop.receiveBuffer[start..<(start + room)])
        let count = unsafe self.loop.system.receive(self.descriptor, into: target)
        if count > 0 {
            self.offer(start + count, kept: start)
        } else if count == 0 {
            self.inputEnded()
        } else {
            self.readFailed(SystemError(Int32(truncatingIfNeeded: -count)))
        }
    }

    private func offer(_ total: Int, kept start: Int) {
        if case .closing = self.life { return }
        let buffer = unsafe UnsafeMutableRawBufferPointer(rebasing: self.loop.receiveBuffer[..<total])
        if start > 0 {
            unsafe buffer.copyBytes(from: self.kept)
            self.kept = []
        }
        var span = unsafe MutableRawSpan(_unsafeBytes: buffer)
        self.resumedWhileOffering = false
        let used = self.consumer?.bytesReceived(&span) ?? total
        guard used < total, self.life == .open else { return }
        unsafe self.kept = Array(buffer[max(0, used)...])
        if self.resumedWhileOffering, !self.paused { self.offerKeptLater() }
    }

    private func inputEnded() {
        self.inputOpen = false
        if self.sawReset { return self.end(.failed(.reset)) }
        self.updateInterest()
        switch self.life {
        case .open: self.consumer?.inputClosed()
        case .closing: self.closeIfDone()
        case .ended, .told, .surrendered: break
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
        guard self.isLive, self.inputOpen, !self.refusesInput else { return }
        self.refusesInput = true
        self.kept = []
        // TCP cannot tell the peer (RFC 9293 §3.6), and would hide its FIN from us; on a Unix socket its writes fail.
        if case .unix = self.localAddress { _ = self.loop.system.shutdownInput(self.descriptor) }
        self.updateInterest()
    }

    /// Whether what arrives is to be read.
    private var reads: Bool {
        self.inputOpen && !self.paused && !(self.refusesInput && self.life == .open)
    }

    // MARK: Writing

    package var queuedBytes: Int {
        self.queue.count + (self.loop.scratch.owner === self ? self.loop.scratch.count : 0)
    }

    private var takesOutput: Bool {
        self.output == .open && self.life == .open
    }

    package func write(_ bytes: RawSpan) {
        guard self.takesOutput, bytes.byteCount > 0 else { return }
        unsafe bytes.withUnsafeBytes { source in
            unsafe self.gather(source.count) { target in unsafe target.copyMemory(from: source) }
        }
    }

    package func write(reserving count: Int, _ fill: (inout MutableRawSpan) -> Int) {
        guard self.takesOutput, count > 0 else { return }
        guard self.claimScratch(count) else {
            let piece = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
                unsafe buffer.initialize(repeating: 0)
                var span = unsafe MutableRawSpan(_unsafeBytes: UnsafeMutableRawBufferPointer(buffer))
                used = max(0, min(count, fill(&span)))
            }
            self.writtenBytes &+= UInt64(piece.count)
            self.queue.append(piece)
            return self.endTurnLater()
        }
        let start = self.loop.scratch.count
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: self.loop.scratch.bytes[start..<(start + count)])
        var span = unsafe MutableRawSpan(_unsafeBytes: room)
        let used = max(0, min(count, fill(&span)))
        self.loop.scratch.count = start + used
        self.writtenBytes &+= UInt64(used)
    }

    private func gather(_ count: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
        self.writtenBytes &+= UInt64(count)
        guard self.claimScratch(count) else {
            let piece = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
                unsafe fill(UnsafeMutableRawBufferPointer(buffer))
                used = count
            }
            unsafe piece.withUnsafeBytes { unsafe self.queue.append($0) }
            return self.endTurnLater()
        }
        let start = self.loop.scratch.count
        unsafe fill(UnsafeMutableRawBufferPointer(rebasing: self.loop.scratch.bytes[start..<(start + count)]))
        self.loop.scratch.count = start + count
    }

    /// Makes room for `count` bytes in the loop's scratch, if this connection may use it: nothing of its own waits before.
    private func claimScratch(_ count: Int) -> Bool {
        guard self.queue.isEmpty else { return false }
        if let owner = self.loop.scratch.owner, owner !== self { owner.flushScratch() }
        if self.loop.scratch.room < count {
            self.flushScratch()
            guard self.queue.isEmpty, count <= OutputScratch.capacity, self.takesOutput else { return false }
        }
        if self.loop.scratch.owner == nil {
            self.loop.scratch.owner = self
            self.endTurnLater()
        }
        return true
    }

    package func writeThrough(_ bytes: RawSpan) {
        guard self.takesOutput, bytes.byteCount > 0 else { return }
        if self.loop.scratch.owner === self { self.flushScratch() }
        self.writtenBytes &+= UInt64(bytes.byteCount)
        guard self.takesOutput else { return }
        unsafe bytes.withUnsafeBytes { unsafe self.sendOrQueue($0) }
    }

    private func sendOrQueue(_ bytes: UnsafeRawBufferPointer) {
        guard self.queue.isEmpty else { return unsafe self.queue.append(bytes) }
        let taken = unsafe self.loop.system.send(self.descriptor, bytes)
        if taken >= 0 { self.sentBytes &+= UInt64(taken) }
        guard taken < bytes.count else { return }
        if taken < 0, !self.mayRetry(taken) { return }
        unsafe self.queue.append(UnsafeRawBufferPointer(rebasing: bytes[max(0, taken)...]))
        self.updateInterest()
    }

    /// Sends what this turn gathered in the loop's scratch.
    func flushScratch() {
        guard self.loop.scratch.owner === self else { return }
        let count = self.loop.scratch.count
        self.loop.scratch.owner = nil
        self.loop.scratch.count = 0
        guard count > 0, self.isLive else { return }
        unsafe self.sendOrQueue(UnsafeRawBufferPointer(rebasing: self.loop.scratch.bytes[..<count]))
    }

    private func drainQueue() {
        guard !self.queue.isEmpty else { return }
        let taken = unsafe self.queue.drain { unsafe self.loop.system.send(self.descriptor, pieces: $0) }
        if taken < 0 {
            _ = self.mayRetry(taken)
            return
        }
        self.sentBytes &+= UInt64(taken)
        if case .closing(let linger) = self.life { self.armCloseTimer(linger) }
        self.updateInterest()
        if self.life == .open { self.consumer?.outputProgressed() }
        self.endTurnLater()
    }

    /// - Returns: whether the send merely has to wait. Otherwise the output is broken; the end is told once what the peer sent before was read.
    private func mayRetry(_ result: Int) -> Bool {
        let error = SystemError(Int32(truncatingIfNeeded: -result))
        if error == .wouldBlock || error == .interrupted || error == .noBuffers { return true }
        self.output = .broken
        self.queue.removeAll()
        switch error {
        case .reset, .brokenPipe:
            self.sawReset = true
            if !self.reads { self.end(.failed(.reset)) }
        case .timedOut: self.end(.failed(.peerUnresponsive))
        default: self.end(.failed(.system(error)))
        }
        return false
    }

    package func shutdownOutput() {
        guard self.takesOutput else { return }
        self.output = .finishing
        self.endTurnLater()
    }

    // MARK: Ending

    package func close(linger: Duration) {
        guard self.life == .open else { return }
        self.life = .closing(linger: linger)
        self.kept = []
        self.paused = false
        if self.output == .open { self.output = .finishing }
        self.armCloseTimer(linger)
        self.updateInterest()
        self.endTurnLater()
    }

    private func armCloseTimer(_ linger: Duration) {
        let timer = self.closeTimer ?? LoopTimer()
        self.closeTimer = timer
        self.loop.arm(timer, after: linger, target: self)
    }

    private func closeIfDone() {
        guard case .closing = self.life, self.queue.isEmpty, self.output == .finished || self.output == .broken else { return }
        if !self.inputOpen || self.output == .broken { self.end(.closed) }
    }

    package func reset() {
        guard self.isLive else { return }
        self.end(.abandoned)
    }

    /// Gives the descriptor back and leaves the telling to the end of the turn.
    private func end(_ end: TransportEnd) {
        guard self.isLive else { return }
        if self.loop.scratch.owner === self {
            self.loop.scratch.owner = nil
            self.loop.scratch.count = 0
        }
        self.life = .ended(end)
        self.kept = []
        self.queue.removeAll()
        if let timer = self.closeTimer { self.loop.disarm(timer) }
        self.unwatch()
        switch end {
        case .closed: self.loop.system.close(self.descriptor)
        case .abandoned, .failed: self.loop.system.reset(self.descriptor)
        }
        self.endTurnLater()
    }

    package func surrender() -> SurrenderedSocket? {
        if self.loop.scratch.owner === self { self.flushScratch() }
        guard self.life == .open, self.queue.isEmpty, self.output == .open else { return nil }
        self.unwatch()
        self.life = .surrendered
        self.consumer = nil
        defer { self.kept = [] }
        return SurrenderedSocket(descriptor: self.descriptor, unread: self.kept)
    }

    // MARK: Watching

    private func updateInterest() {
        guard self.isLive else { return }
        var wanted: Interest = []
        if self.reads { wanted.insert(.readable) }
        if !self.queue.isEmpty { wanted.insert(.writable) }
        guard wanted != self.interest || !self.watched else { return }
        self.interest = wanted
        if self.watched {
            self.loop.system.rewatch(self.descriptor, for: wanted, token: self.token)
        } else if !wanted.isEmpty, case .success(let token) = self.loop.watch(self.descriptor, for: wanted, self) {
            self.token = token
            self.watched = true
        }
    }

    private func unwatch() {
        guard self.watched else { return }
        self.watched = false
        self.loop.unwatch(self.descriptor, token: self.token)
    }

    private func endTurnLater() {
        guard !self.awaitsTurnEnd else { return }
        self.awaitsTurnEnd = true
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
            self.hungUpUnread()
        } else if events.contains(.readable) {
            // Paused without telling the system, which costs nothing if reading resumes before anything comes.
            self.updateInterest()
        }
    }

    /// Both directions are over while nobody reads. A failure is told now; a clean end waits until it is read, unwatched meanwhile because the
    /// system would report it again and again.
    private func hungUpUnread() {
        if self.sawReset { return self.end(.failed(.reset)) }
        if let error = self.loop.system.connectError(self.descriptor) { return self.readFailed(error) }
        if case .closing = self.life { return self.closeIfDone() }
        self.interest = []
        self.unwatch()
    }
}

extension SocketConnection: TurnEndTarget {
    package func turnEnded() {
        if self.awaitsNextTurn {
            self.awaitsNextTurn = false
            self.offerKept()
        }
        self.awaitsTurnEnd = false
        self.flushScratch()
        self.sendFreshlyQueued()
        self.finishOutputIfDue()
        self.closeIfDone()
        self.tellEnd()
    }

    /// Sends what went straight to the queue because it did not fit the scratch: nothing watches for room yet.
    private func sendFreshlyQueued() {
        guard self.isLive, !self.queue.isEmpty, !self.interest.contains(.writable) else { return }
        let taken = unsafe self.queue.drain { unsafe self.loop.system.send(self.descriptor, pieces: $0) }
        if taken >= 0 {
            self.sentBytes &+= UInt64(taken)
        } else if !self.mayRetry(taken) {
            return
        }
        self.updateInterest()
    }

    private func finishOutputIfDue() {
        guard self.isLive, self.output == .finishing, self.queue.isEmpty else { return }
        self.output = .finished
        _ = self.loop.system.shutdownOutput(self.descriptor)
    }

    private func tellEnd() {
        guard case .ended(let end) = self.life else { return }
        self.life = .told
        let consumer = self.consumer
        self.consumer = nil
        consumer?.transportEnded(end)
    }
}

extension SocketConnection: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        guard case .closing = self.life else { return }
        // Unsent bytes mean that the peer did not get everything: not a clean end.
        self.end(self.queue.isEmpty ? .closed : .abandoned)
    }
}
