/// A connected socket on a loop.
///
/// An idle connection owns no buffer: reads land in the loop's, writes are gathered in the loop's and leave at the end
/// of the turn. Only what a consumer leaves unread, or the kernel does not take, is copied into the connection.
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
    var token: UInt64 = 0
    var interest: Interest = .readable
    var watched = false
    var inputOpen = true
    /// Our side wants no more input. Nothing is read until the connection closes, which reads on to throw away.
    var refusesInput = false
    var paused: Bool
    var sawReset = false
    var awaitsTurnEnd = false
    var awaitsNextTurn = false
    /// Reading was resumed, and what had been left is still to be offered again.
    var owesKept = false
    /// The consumer wants to be told when everything has left.
    var owesProgress = false
    /// Reading was resumed from inside the consumer's own `bytesReceived`, by a new owner perhaps: what it leaves is
    /// offered again.
    var resumedWhileOffering = false
    var kept: [UInt8] = []
    var closeTimer: LoopTimer?

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

    // MARK: Watching

    func updateInterest() {
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

    func unwatch() {
        guard self.watched else { return }
        self.watched = false
        self.loop.unwatch(self.descriptor, token: self.token)
    }

    func endTurnLater() {
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

    /// Both directions are over while nobody reads. A failure is told now; a clean end waits until it is read,
    /// unwatched meanwhile because the system would report it again and again.
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
            if self.owesKept { self.offerKept() }
        }
        self.awaitsTurnEnd = false
        self.flushScratch()
        self.sendFreshlyQueued()
        self.tellProgressIfOwed()
        self.finishOutputIfDue()
        self.closeIfDone()
        self.tellEnd()
    }

    /// Sends what went straight to the queue because it did not fit the scratch: nothing watches for room yet.
    private func sendFreshlyQueued() {
        guard self.isLive, !self.queue.isEmpty, !self.interest.contains(.writable) else { return }
        let taken = self.queue.drain { self.loop.system.send(self.descriptor, pieces: $0, skipping: $1) }
        if taken >= 0 {
            self.sentBytes &+= UInt64(taken)
        } else if !self.mayRetry(taken) {
            return
        }
        self.updateInterest()
        if taken > 0 { self.owesProgress = true }
    }

    /// While something still waits, `drainQueue` tells of it.
    private func tellProgressIfOwed() {
        guard self.owesProgress else { return }
        self.owesProgress = false
        guard self.life == .open, self.queue.isEmpty, self.output != .broken else { return }
        self.consumer?.outputProgressed()
        // What the consumer wrote just now leaves in this turn too.
        self.endTurnLater()
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
