import StreamTransport

/// A line with its clock, on a loop. Lives while anybody is in it.
final class HandshakeQueue {
    private let gateway: LoopGateway
    private let listener: String
    private let timer = LoopTimer()
    private var line = HandshakeLine()
    private var limit = 1

    init(_ gateway: LoopGateway, listener: String) {
        self.gateway = gateway
        self.listener = listener
    }

    /// - Parameter limit: of the listener on all loops together.
    /// - Returns: whether the handshake may begin; else `beginHandshake` is called later.
    func enter(_ identifier: UInt64, limit: Int) -> Bool {
        self.limit = max(1, limit / max(1, self.gateway.shared.loopCount))
        let begins = self.line.arrived(identifier, limit: self.limit, at: self.gateway.loop.now)
        if !begins { self.gateway.shared.counters.count("tls-handshakes-waited") }
        self.armTimer()
        return begins
    }

    func leave(_ identifier: UInt64) {
        self.line.left(identifier)
        // Not now: the connection that leaves may have records in the buffer that all connections of the loop share.
        self.gateway.loop.inNextTurn(self)
        self.armTimer()
        if self.line.isEmpty { self.gateway.handshakeQueues[self.listener] = nil }
    }

    private func armTimer() {
        if let deadline = self.line.nextDeadline {
            self.gateway.loop.arm(self.timer, at: deadline, target: self)
        } else {
            self.gateway.loop.disarm(self.timer)
        }
    }
}

extension HandshakeQueue: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        while let overdue = self.line.overdue(at: self.gateway.loop.now) {
            guard let connection = self.gateway.live[overdue] as? InboundConnection else {
                self.leave(overdue)
                continue
            }
            connection.handshakeOverdue()
        }
        self.armTimer()
    }
}

extension HandshakeQueue: TurnEndTarget {
    func turnEnded() {
        while let next = self.line.takeNext(limit: self.limit, at: self.gateway.loop.now) {
            (self.gateway.live[next] as? InboundConnection)?.beginHandshake()
        }
        self.armTimer()
    }
}
