import StreamTransport

/// Keep-alive of one WebSocket: a ping every interval, and a peer that showed no sign of life since the last one for too
/// long is gone.
///
/// Any byte is a sign of life, not only the Pong: behind a large message a Pong may take its time. So is what a slow
/// reader does, whose Ping waits behind megabytes in the kernels of both sides: it acknowledges what is before the Ping,
/// and as it reads on, it has room for more (`OutputDelivery`). That is looked at twice in the pong timeout, and only
/// while a Pong is late. Such a reader has four times the pong timeout for each further sign of life, until a Pong comes
/// in time: its kernel may have megabytes for it whose reading shows in large steps, or not at all, because a window has
/// a limit of its own.
struct KeepAliveState {
    enum Order: Equatable {
        case sendPing
        case giveUp
        case wait
    }

    /// When the peer last showed life, at the earliest since the ping that nothing was heard after.
    private var unanswered: MonotonicInstant?
    /// The last ping left when it was due, and its Pong has not come. Where the optional leaves room for it.
    private var awaitsPong = false
    /// The peer was seen to read while its last Pong was late.
    private var isSlow = false
    private var nextPing: MonotonicInstant
    /// Made by the first look at a peer that is late.
    private var late: LatePeer?

    init(interval: Duration, now: MonotonicInstant) {
        self.nextPing = now.advanced(by: interval)
    }

    mutating func heard() {
        if self.unanswered != nil, self.late == nil { self.isSlow = false }
        self.unanswered = nil
        self.late = nil
    }

    /// The peer has something new to show life by: a ping that left later than `due` had ordered it, or bytes before it.
    mutating func asked(at now: MonotonicInstant) {
        self.unanswered = now
        self.late = nil
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
        min(self.nextPing, self.nextLook(timeout: timeout) ?? self.nextPing)
    }

    private func nextLook(timeout: Duration) -> MonotonicInstant? {
        guard let unanswered = self.unanswered else { return nil }
        let look = (self.late?.lookedAt ?? unanswered).advanced(by: timeout / 2)
        return min(look, unanswered.advanced(by: self.patience(timeout)))
    }

    private func patience(_ timeout: Duration) -> Duration {
        self.isSlow ? timeout * 4 : timeout
    }

    /// - Parameters:
    ///   - interval: between pings; given anew each time, because the options that say so are shared by many connections.
    ///   - timeout: how long the peer may show no life after a ping.
    ///   - delivery: how far it has come with what we sent; asked only while a Pong is late.
    mutating func due(
        at now: MonotonicInstant, interval: Duration, timeout: Duration, delivery: () -> OutputDelivery?
    ) -> Order {
        var asksAgain = false
        if let look = self.nextLook(timeout: timeout), look <= now {
            guard self.look(at: now, timeout: timeout, delivery()) else { return .giveUp }
            // What the peer acknowledges it with says how much room it has by then.
            asksAgain = true
        }
        guard self.nextPing <= now else {
            if asksAgain { self.awaitsPong = false }
            return asksAgain ? .sendPing : .wait
        }
        self.nextPing = now.advanced(by: interval)
        // With one under way, it cannot be told which of them a Pong answers.
        self.awaitsPong = !asksAgain
        if self.unanswered == nil { self.unanswered = now }
        return .sendPing
    }

    /// - Returns: whether the peer may still be there.
    private mutating func look(
        at now: MonotonicInstant, timeout: Duration, _ delivery: OutputDelivery?
    ) -> Bool {
        let late = self.late ?? LatePeer()
        self.late = late
        if late.showsLife(delivery) {
            self.unanswered = now
            self.isSlow = true
        }
        late.lookedAt = now
        guard let unanswered = self.unanswered else { return true }
        return unanswered.advanced(by: self.patience(timeout)) > now
    }
}

/// A peer whose Pong is late, and how far it had come when last looked at. Apart, because few connections have one.
private final class LatePeer {
    var lookedAt: MonotonicInstant?
    private var last: OutputDelivery?
    /// The ping that is waited for is among the bytes before this place.
    private var place: Int64 = 0

    /// Bytes before the ping that were acknowledged, and bytes behind it as long as the peer takes in no more than it
    /// reads. What it acknowledges freely says nothing of the program behind the kernel; that it has more room does.
    func showsLife(_ delivery: OutputDelivery?) -> Bool {
        guard let delivery else { return false }
        defer { self.last = delivery }
        guard let last = self.last else {
            self.place = delivery.written
            return false
        }
        if delivery.acknowledged > last.acknowledged, last.acknowledged < self.place || last.isHeldUp { return true }
        if let window = delivery.window, let former = last.window { return window > former }
        return false
    }
}
