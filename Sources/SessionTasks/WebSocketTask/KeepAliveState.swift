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
    private var nextPing: MonotonicInstant
    /// When the last ping left, until its Pong came; 0 for none. Not an optional, which would take twice the room.
    private var sentAt: Int64 = 0

    init(interval: Duration, now: MonotonicInstant) {
        self.nextPing = now.advanced(by: interval)
    }

    mutating func heard() {
        self.unanswered = nil
    }

    /// The peer has something new to show life by: a ping that left later than `due` had ordered it, or bytes before it.
    mutating func asked(at now: MonotonicInstant) {
        self.unanswered = now
        if self.sentAt != 0 { self.sentAt = now.nanoseconds }
    }

    /// When the ping left that a Pong answers now; `nil` if none is out.
    mutating func takeSent() -> MonotonicInstant? {
        guard self.sentAt != 0 else { return nil }
        defer { self.sentAt = 0 }
        return MonotonicInstant(nanoseconds: self.sentAt)
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
        self.sentAt = now.nanoseconds
        return .sendPing
    }
}
