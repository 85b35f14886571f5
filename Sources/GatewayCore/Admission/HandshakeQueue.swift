import DequeModule
import StreamTransport

/// The TLS handshakes of one listener, running and queued, with their timer. On a loop; released when there are none.
final class HandshakeQueue {
    private let gateway: LoopGateway
    private let listener: String
    private let timer = LoopTimer()
    private var slots = HandshakeSlots()
    private var limit = 1

    init(_ gateway: LoopGateway, listener: String) {
        self.gateway = gateway
        self.listener = listener
    }

    /// - Parameter limit: of the listener on all loops together.
    /// - Returns: whether the handshake may begin; else `beginHandshake` is called later.
    func enter(_ identifier: UInt64, limit: Int) -> Bool {
        self.limit = max(1, limit / max(1, self.gateway.shared.loopCount))
        let begins = self.slots.arrived(identifier, limit: self.limit, at: self.gateway.loop.now)
        if !begins { self.gateway.shared.counters.count("tls-handshakes-waited") }
        self.armTimer()
        return begins
    }

    func leave(_ identifier: UInt64) {
        self.slots.removed(identifier)
        // The next one begins in the next turn: the connection that leaves may have records in the buffer that all
        // connections of the loop share.
        self.gateway.loop.inNextTurn(self)
        self.armTimer()
        if self.slots.isEmpty { self.gateway.handshakeQueues[self.listener] = nil }
    }

    private func armTimer() {
        if let deadline = self.slots.nextDeadline {
            self.gateway.loop.arm(self.timer, at: deadline, target: self)
        } else {
            self.gateway.loop.disarm(self.timer)
        }
    }
}

extension HandshakeQueue: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        while let expired = self.slots.overdue(at: self.gateway.loop.now) {
            guard let connection = self.gateway.live[expired] as? InboundConnection else {
                self.leave(expired)
                continue
            }
            connection.handshakeOverdue()
        }
        self.armTimer()
    }
}

extension HandshakeQueue: TurnEndTarget {
    func turnEnded() {
        while let next = self.slots.takeNext(limit: self.limit, at: self.gateway.loop.now) {
            (self.gateway.live[next] as? InboundConnection)?.beginHandshake()
        }
        self.armTimer()
    }
}

/// The TLS handshakes of one listener on one loop: a limited number at once, because each takes some 55 KiB before the
/// client is known. Further connections wait in order of arrival, holding only a socket.
///
/// While others wait, a handshake has `queuedTimeout` to complete, so that silent clients cannot keep others out for
/// their whole `handshake-timeout`.
package struct HandshakeSlots: Sendable {
    private static let queuedTimeout = Duration.seconds(2)

    private var running: [UInt64: MonotonicInstant] = [:]
    /// In starting order; may contain handshakes that ended.
    private var started: Deque<UInt64> = []
    /// In arrival order; may contain connections that ended.
    private var waiting: Deque<UInt64> = []
    private var waitingSet: Set<UInt64> = []

    package init() {}

    package var isEmpty: Bool { self.running.isEmpty && self.waitingSet.isEmpty }

    /// A connection is ready to begin its handshake.
    /// - Parameter limit: concurrent handshakes; at least one is allowed.
    /// - Returns: whether it may begin; otherwise `takeNext` returns it later.
    package mutating func arrived(_ identifier: UInt64, limit: Int, at now: MonotonicInstant) -> Bool {
        guard self.waitingSet.isEmpty, self.running.count < max(1, limit) else {
            self.waiting.append(identifier)
            self.waitingSet.insert(identifier)
            return false
        }
        self.begin(identifier, at: now)
        return true
    }

    private mutating func begin(_ identifier: UInt64, at now: MonotonicInstant) {
        self.running[identifier] = now
        self.started.append(identifier)
    }

    /// The handshake or the connection ended. Idempotent.
    package mutating func removed(_ identifier: UInt64) {
        self.running[identifier] = nil
        self.waitingSet.remove(identifier)
        while let first = self.started.first, self.running[first] == nil { self.started.removeFirst() }
        while let first = self.waiting.first, !self.waitingSet.contains(first) { self.waiting.removeFirst() }
    }

    /// The next queued connection, if the limit permits; its handshake begins `now`.
    package mutating func takeNext(limit: Int, at now: MonotonicInstant) -> UInt64? {
        guard self.running.count < max(1, limit), let next = self.waiting.first else { return nil }
        self.removed(next)
        self.begin(next, at: now)
        return next
    }

    /// Deadline of the oldest handshake while others are queued; `nil` while none is.
    package var nextDeadline: MonotonicInstant? {
        guard !self.waitingSet.isEmpty, let oldest = self.started.first else { return nil }
        return self.running[oldest]?.advanced(by: Self.queuedTimeout)
    }

    /// A handshake past its deadline; it stays counted.
    package func overdue(at now: MonotonicInstant) -> UInt64? {
        guard let deadline = self.nextDeadline, deadline <= now else { return nil }
        return self.started.first
    }
}
