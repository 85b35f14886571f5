import StreamTransport
import WebSocketProtocol

/// Pings and Pongs, on the loop.
extension WebSocketTask {
    /// Payload of keep-alive pings. Pings of the task's user carry a number instead.
    private static let keepAlivePayload = Array("keep-alive".utf8)

    /// Bytes that the kernel takes and cannot send yet: so many wait there before a Ping. A connection over a fast
    /// network sends as fast with it, and one whose peer does not read holds megabytes less.
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
        if !self.machine.pauses.isEmpty || self.isPingHeldBack { state.peerResponded() }
        let action = state.due(at: self.loop.now, interval: interval, timeout: timeout) { self.transport?.delivery }
        self.keepAlive = state
        switch action {
        case .sendPing: self.sendControl(.ping, Self.keepAlivePayload)
        case .giveUp:
            self.failure = .peerUnresponsive
            self.transport?.reset()
            return self.finish()
        case .wait: break
        }
        self.loop.arm(self.timer, at: state.deadline(timeout: timeout), target: self)
    }

    /// A peer cannot answer a ping that waits for the rest of a frame; instead, accepting the bytes ahead of it counts.
    private var isPingHeldBack: Bool {
        self.forwarding?.ping != nil && self.queuedBytes == 0
    }

    /// A delayed ping was sent.
    func pingLeft() {
        guard self.machine.isOpen, var state = self.keepAlive else { return }
        state.responseExpected(at: self.loop.now)
        self.keepAlive = state
        self.loop.arm(self.timer, at: state.deadline(timeout: self.options.pongTimeout), target: self)
    }

    func answerPing(_ payload: [UInt8]) {
        // After our own Close nothing more may be sent (RFC 6455 §5.5.1).
        guard self.machine.isOpen else { return }
        self.stopReadingIfBehind(onPongOf: payload.count, queued: self.sendControl(.pong, payload))
    }

    func pongReceived(_ payload: [UInt8]) {
        if payload == Self.keepAlivePayload, let interval = self.options.pingInterval,
            let sent = self.keepAlive?.takeSent(interval: interval)
        {
            self.answered(pingOf: sent)
        }
        guard let queues = self.queuesIfMade else { return }
        for number in queues.pings.pongReceived(payload) {
            guard let awaited = queues.pongs.removeValue(forKey: number) else { continue }
            self.answered(pingOf: awaited.sentAt)
            awaited.completion(.success(()))
        }
    }

    private func answered(pingOf sent: MonotonicInstant) {
        let duration = sent.duration(to: self.loop.now)
        self.metrics.answered(after: duration)
        guard self.metrics.keepsRoundTrips else { return }
        var roundTrips = self.roundTrips ?? RoundTrips()
        self.roundTrips = nil
        roundTrips.add(duration)
        self.roundTrips = roundTrips
    }

    func beginPing(_ number: UInt64, _ payload: [UInt8], _ completion: @escaping OutgoingMessages.Completion) {
        let marked = payload.isEmpty ? Self.numbered(number) : payload
        guard self.queues.pings.pingSent(number, payload: marked) else {
            return completion(.failure(.usageError("\(PendingPings.limit) pings wait for their Pongs already")))
        }
        self.queues.pongs[number] = PendingPong(sentAt: self.loop.now, completion: completion)
        self.sendControl(.ping, marked)
    }

    private static func numbered(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
    }
}

/// Keep-alive of one WebSocket: a ping every interval; the peer is considered gone if it shows no sign of life for too
/// long after one.
///
/// Any received byte is a sign of life, not only the Pong: after a large message a Pong may take long. So is the
/// progress of a slow reader whose Ping waits for megabytes before it in both kernels: it acknowledges bytes ahead of the
/// Ping, and its window grows as it reads (`OutputDelivery`). This is checked twice in the pong timeout, and only while
/// a Pong is late. Such a reader gets four times the pong timeout for each further sign of life, until a Pong comes in
/// time: its kernel may hold megabytes whose reading shows in large steps or, because windows are limited, not at all.
struct KeepAliveState {
    enum Action: Equatable {
        case sendPing
        case giveUp
        case wait
    }

    /// When the peer last showed life, at the earliest since the ping that nothing was heard after.
    private var unanswered: MonotonicInstant?
    /// The last ping left when it was due, and its Pong has not come. Here because alignment leaves space.
    private var awaitsPong = false
    /// The peer was seen to read while its last Pong was late.
    private var isSlow = false
    private var nextPing: MonotonicInstant
    /// Made by the first look at a peer that is late.
    private var late: LatePeer?

    init(interval: Duration, now: MonotonicInstant) {
        self.nextPing = now.advanced(by: interval)
    }

    mutating func peerResponded() {
        if self.unanswered != nil, self.late == nil { self.isSlow = false }
        self.unanswered = nil
        self.late = nil
    }

    /// The peer has something new to show life by: a ping that left later than `due` had ordered it, or bytes before
    /// it.
    mutating func responseExpected(at now: MonotonicInstant) {
        self.unanswered = now
        self.late = nil
        // Its time of sending is not kept: the round trip cannot be measured.
        self.awaitsPong = false
    }

    /// When the ping left that a Pong answers now; `nil` if that is not known.
    fileprivate mutating func takeSent(interval: Duration) -> MonotonicInstant? {
        guard self.awaitsPong else { return nil }
        self.awaitsPong = false
        return self.nextPing.advanced(by: .zero - interval)
    }

    /// When to ask `due` again.
    func deadline(timeout: Duration) -> MonotonicInstant {
        min(self.nextPing, self.nextCheck(timeout: timeout) ?? self.nextPing)
    }

    private func nextCheck(timeout: Duration) -> MonotonicInstant? {
        guard let unanswered = self.unanswered else { return nil }
        let checkPeer = (self.late?.lookedAt ?? unanswered).advanced(by: timeout / 2)
        return min(checkPeer, unanswered.advanced(by: self.pongDeadlineAllowance(timeout)))
    }

    private func pongDeadlineAllowance(_ timeout: Duration) -> Duration {
        self.isSlow ? timeout * 4 : timeout
    }

    /// - Parameters:
    ///   - interval: time between pings; an argument because many connections share the options that set it.
    ///   - timeout: maximum time without any received data after a ping.
    ///   - delivery: progress of the data we sent; called only while a Pong is late.
    fileprivate mutating func due(
        at now: MonotonicInstant, interval: Duration, timeout: Duration, delivery: () -> OutputDelivery?
    ) -> Action {
        var asksAgain = false
        if let look = self.nextCheck(timeout: timeout), look <= now {
            guard self.look(at: now, timeout: timeout, delivery()) else { return .giveUp }
            // The peer's acknowledgement will say how large its window is by then.
            asksAgain = true
        }
        guard self.nextPing <= now else {
            if asksAgain { self.awaitsPong = false }
            return asksAgain ? .sendPing : .wait
        }
        self.nextPing = now.advanced(by: interval)
        // With another ping outstanding, it is unknown which of them a Pong answers.
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
        if late.indicatesProgress(delivery) {
            self.unanswered = now
            self.isSlow = true
        }
        late.lookedAt = now
        guard let unanswered = self.unanswered else { return true }
        return unanswered.advanced(by: self.pongDeadlineAllowance(timeout)) > now
    }
}

/// A peer whose Pong is late, and its progress at the last check. Stored apart, because few connections have one.
private final class LatePeer {
    var lookedAt: MonotonicInstant?
    private var last: OutputDelivery?
    /// The ping that is waited for is among the bytes before this offset.
    private var streamOffset: Int64 = 0

    /// Whether bytes ahead of the ping were acknowledged, or bytes after it while the peer accepts no more than it
    /// reads. An acknowledgement shows that the peer's kernel is there, a growing window that its program reads.
    func indicatesProgress(_ delivery: OutputDelivery?) -> Bool {
        guard let delivery else { return false }
        defer { self.last = delivery }
        guard let last = self.last else {
            self.streamOffset = delivery.written
            return false
        }
        if delivery.acknowledged > last.acknowledged, last.acknowledged < self.streamOffset || last.isHeldUp {
            return true
        }
        if let window = delivery.window, let former = last.window { return window > former }
        return false
    }
}

/// A ping of the task's user that went out.
struct PendingPong {
    let sentAt: MonotonicInstant
    let completion: OutgoingMessages.Completion
}

/// How long the last pings took to be answered, in microseconds. Of the last 16: more would cost each connection more
/// than they tell.
package struct RoundTrips: Sendable {
    package static let limit = 16

    /// The oldest is overwritten.
    private var recent = InlineArray<16, UInt32>(repeating: 0)
    /// Pings answered in all.
    package private(set) var count: UInt64 = 0

    package init() {}

    package mutating func add(_ duration: Duration) {
        self.recent[Int(self.count % UInt64(Self.limit))] = UInt32(clamping: duration.clampedMicroseconds)
        self.count += 1
    }

    package var last: Duration? {
        guard self.count > 0 else { return nil }
        return .microseconds(self.recent[Int((self.count - 1) % UInt64(Self.limit))])
    }

    /// The smallest that `share` of the last ones do not exceed; `share` from 0 to 1.
    package func quantile(_ share: Double) -> Duration? {
        let kept = Int(min(self.count, UInt64(Self.limit)))
        guard kept > 0 else { return nil }
        let index = Int((share * Double(kept)).rounded(.up)) - 1
        let sorted = (0..<kept).map { self.recent[$0] }.sorted()
        return .microseconds(sorted[min(kept - 1, max(0, index))])
    }
}

extension Duration {
    fileprivate var clampedMicroseconds: Int64 {
        let (seconds, attoseconds) = self.components
        guard seconds < 4_000 else { return 4_000_000_000 }
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}
