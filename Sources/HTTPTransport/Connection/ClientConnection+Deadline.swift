import NIOCore

/// The deadline of a connection on which nothing moves. One task for many exchanges: it looks how long ago the last
/// byte was when it fires, and is put off instead of made anew with every byte.
extension ClientConnection {
    func progressed() {
        self.lastProgress = .now()
    }

    /// What one read brings has one time.
    func noteReceived() {
        guard self.hasReceived else { return }
        self.hasReceived = false
        self.progressed()
    }

    func watch(_ exchange: Exchange) {
        guard let timeout = exchange.order.idleTimeout.map(TimeAmount.bounded) else { return }
        let wanted = self.lastProgress + timeout
        if let deadline = self.deadline, deadline.at <= wanted { return }
        self.deadline?.task.cancel()
        self.schedule(at: wanted)
    }

    private func schedule(at instant: NIODeadline) {
        guard let eventLoop = self.context?.eventLoop.assumeIsolated() else { return }
        self.deadline = (instant, eventLoop.scheduleTask(deadline: instant) { self.deadlinePassed() })
    }

    private func deadlinePassed() {
        self.deadline = nil
        guard case .busy(let exchange) = self.phase, let timeout = exchange.order.idleTimeout.map(TimeAmount.bounded)
        else { return }
        let now = NIODeadline.now()
        // While the caller keeps us waiting, the server is not to blame.
        if !self.awaitsNetwork(exchange) || self.piecesMoved() { self.lastProgress = now }
        guard now < self.lastProgress + timeout else { return self.fail(.idle) }
        self.schedule(at: self.lastProgress + timeout)
    }

    /// Whether the system took some of a piece that has not left whole.
    private func piecesMoved() -> Bool {
        guard self.isWritingPiece else { return false }
        let unsent = try? self.context?.channel.syncOptions?.getOption(.bufferedWritableBytes)
        defer { self.unsentBytes = unsent ?? 0 }
        return unsent != self.unsentBytes
    }

    private func awaitsNetwork(_ exchange: Exchange) -> Bool {
        if exchange.isHeld { return false }
        if self.isWritingPiece { return true }
        if exchange.progress.sending == .body { return false }
        return exchange.wantsBytes
    }
}
