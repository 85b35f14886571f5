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

    /// When the ping went out that nothing was heard after.
    private var unanswered: MonotonicInstant?
    /// The last ping left when it was due, and its Pong has not come. Where the optional leaves room for it.
    private var awaitsPong = false
    private var nextPing: MonotonicInstant

    init(interval: Duration, now: MonotonicInstant) {
        self.nextPing = now.advanced(by: interval)
    }

    mutating func heard() {
        self.unanswered = nil
    }

    /// The peer has something new to show life by: a ping that left later than `due` had ordered it, or bytes before it.
    mutating func asked(at now: MonotonicInstant) {
        self.unanswered = now
        // When it left is not kept: how long it takes cannot be told.
        self.awaitsPong = false
    }

    /// When the ping left that a Pong answers now; `nil` if that is not known.
    mutating func takeSent(interval: Duration) -> MonotonicInstant? {
        guard self.awaitsPong else { return nil }
        self.awaitsPong = false
        return self.nextPing.advanced(by: .zero - interval)
    }

    /// When to ask `due` again.
    func deadline(timeout: Duration) -> MonotonicInstant {
        guard let unanswered = self.unanswered else { return self.nextPing }
        return min(self.nextPing, unanswered.advanced(by: timeout))
    }

    /// - Parameters:
    ///   - interval: between pings; given anew each time, because the options that say so are shared by many connections.
    ///   - timeout: how long the peer may stay silent after a ping.
    mutating func due(at now: MonotonicInstant, interval: Duration, timeout: Duration) -> Order {
        if let unanswered = self.unanswered, unanswered.advanced(by: timeout) <= now { return .giveUp }
        guard self.nextPing <= now else { return .wait }
        self.nextPing = now.advanced(by: interval)
        if self.unanswered == nil { self.unanswered = now }
        self.awaitsPong = true
        return .sendPing
    }
}
