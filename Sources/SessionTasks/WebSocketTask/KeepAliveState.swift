import StreamTransport

/// Keep-alive of one WebSocket: a ping every interval, and a peer that sent nothing at all since the last one for too
/// long is gone.
///
/// Any byte is a sign of life, not only the Pong: behind a large message a Pong may take its time.
struct KeepAliveState {
    enum Order: Equatable {
        case sendPing
        case giveUp
        case wait
    }

    let interval: Duration
    let timeout: Duration
    /// When the ping went out that nothing was heard after.
    private var unanswered: MonotonicInstant?
    private var nextPing: MonotonicInstant

    init(interval: Duration, timeout: Duration, now: MonotonicInstant) {
        self.interval = interval
        self.timeout = timeout
        self.nextPing = now.advanced(by: interval)
    }

    mutating func heard() {
        self.unanswered = nil
    }

    /// When to ask `due` again.
    var deadline: MonotonicInstant {
        guard let unanswered = self.unanswered else { return self.nextPing }
        return min(self.nextPing, unanswered.advanced(by: self.timeout))
    }

    mutating func due(at now: MonotonicInstant) -> Order {
        if let unanswered = self.unanswered, unanswered.advanced(by: self.timeout) <= now { return .giveUp }
        guard self.nextPing <= now else { return .wait }
        self.nextPing = now.advanced(by: self.interval)
        if self.unanswered == nil { self.unanswered = now }
        return .sendPing
    }
}
