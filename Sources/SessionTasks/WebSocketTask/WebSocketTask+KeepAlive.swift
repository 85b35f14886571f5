import StreamTransport
import WebSocketProtocol

/// Pings and Pongs, on the loop.
extension WebSocketTask {
    /// What keep-alive pings carry. Pings of the task's user carry a number in its place.
    private static let keepAlivePayload = Array("keep-alive".utf8)

    /// Bytes that the kernel takes and cannot send yet: so many wait there before a Ping. A connection over a fast network
    /// sends as fast with it, and one whose peer does not read holds megabytes less.
    private static let unsentLimit = 128 << 10

    func startKeepAlive() {
        guard let interval = self.options.pingInterval else { return self.loop.disarm(self.timer) }
        self.transport?.limitUnsent(to: Self.unsentLimit)
        let state = KeepAliveState(interval: interval, now: self.loop.now)
        self.keepAlive = state
        self.loop.arm(self.timer, at: state.deadline(timeout: self.options.pongTimeout), target: self)
    }

    func keepAliveDue() {
        guard var state = self.keepAlive, let interval = self.options.pingInterval else { return }
        let timeout = self.options.pongTimeout
        // A peer that is not read because it is ahead of its reader cannot be heard either.
        if !self.wantsReading || self.readingStopped || self.suspended || self.isPingHeldBack { state.heard() }
        let order = state.due(at: self.loop.now, interval: interval, timeout: timeout) { self.transport?.delivery }
        self.keepAlive = state
        switch order {
        case .sendPing: self.sendControl(.ping, Self.keepAlivePayload)
        case .giveUp:
            self.failure = .peerUnresponsive
            self.phase = .draining
            self.transport?.reset()
            return self.finish()
        case .wait: break
        }
        self.loop.arm(self.timer, at: state.deadline(timeout: timeout), target: self)
    }

    /// A peer cannot answer a ping that waits for the rest of a frame. In its place it is to take what waits before it,
    /// if anything does.
    private var isPingHeldBack: Bool {
        self.forwarding?.ping != nil && self.queuedBytes == 0
    }

    /// A ping that had to wait is on its way.
    func pingLeft() {
        guard self.phase == .open, var state = self.keepAlive else { return }
        state.asked(at: self.loop.now)
        self.keepAlive = state
        self.loop.arm(self.timer, at: state.deadline(timeout: self.options.pongTimeout), target: self)
    }

    func answerPing(_ payload: [UInt8]) {
        // After our own Close nothing more may be sent (RFC 6455 §5.5.1).
        guard self.phase == .open else { return }
        self.stopReadingIfBehind(self.sendControl(.pong, payload))
    }

    func pongReceived(_ payload: [UInt8]) {
        if payload == Self.keepAlivePayload, let interval = self.options.pingInterval,
            let sent = self.keepAlive?.takeSent(interval: interval)
        {
            self.answered(pingOf: sent)
        }
        guard let queues = self.queuesIfMade else { return }
        for number in queues.pings.received(payload) {
            guard let awaited = queues.pongs.removeValue(forKey: number) else { continue }
            self.answered(pingOf: awaited.sentAt)
            awaited.completion(.success(()))
        }
    }

    private func answered(pingOf sent: MonotonicInstant) {
        let duration = sent.duration(to: self.loop.now)
        self.tally.answered(after: duration)
        guard self.tally.keepsRoundTrips else { return }
        var roundTrips = self.roundTrips ?? RoundTrips()
        self.roundTrips = nil
        roundTrips.add(duration)
        self.roundTrips = roundTrips
    }

    func beginPing(_ number: UInt64, _ payload: [UInt8], _ completion: @escaping OutgoingMessages.Completion) {
        let marked = payload.isEmpty ? Self.numbered(number) : payload
        guard self.queues.pings.sent(number, payload: marked) else {
            return completion(.failure(.usage("\(PingLedger.limit) pings wait for their Pongs already")))
        }
        self.queues.pongs[number] = AwaitedPong(sentAt: self.loop.now, completion: completion)
        self.sendControl(.ping, marked)
    }

    private static func numbered(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }
}
