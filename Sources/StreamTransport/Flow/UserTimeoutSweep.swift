/// Turns the user timeout off for connections whose output is idle, and on again with their next bytes; one per loop.
///
/// On Linux `TCP_USER_TIMEOUT` overrides the number of keep-alive probes (tcp(7)): an idle connection whose peer is
/// gone would end after the user timeout, whatever keep-alive says. So the timeout applies only while bytes may be
/// unacknowledged. The kernel then notices an idle peer's loss after `idle + probes × interval`, a busy one's after the
/// user timeout.
///
/// Each sweep looks at all connections with recent output, every half of the shortest keep-alive idle time: well before
/// the kernel sends its first probe. A connection costs at most two system calls in that time however much it sends; an
/// idle one costs neither a call nor memory.
final class UserTimeoutSweep {
    /// Connections checked in a turn.
    private static let share = 256

    /// Those whose bytes may be unacknowledged; each knows its place.
    private var active: [SocketConnection] = []
    /// Index at which the sweep continues.
    private var next = 0
    private var pause = Duration.zero
    private let timer = LoopTimer()

    func add(_ connection: SocketConnection, pause: Duration) {
        connection.sweepIndex = Int32(clamping: self.active.count)
        self.active.append(connection)
        guard self.active.count == 1 || pause < self.pause else { return }
        self.pause = pause
        self.next = 0
        connection.loop.arm(self.timer, after: pause, target: self)
    }

    func remove(_ connection: SocketConnection) {
        let place = Int(connection.sweepIndex)
        guard self.active.indices.contains(place), let last = self.active.popLast() else { return }
        connection.sweepIndex = -1
        if last !== connection {
            self.active[place] = last
            last.sweepIndex = Int32(clamping: place)
        } else if self.active.isEmpty {
            connection.loop.disarm(self.timer)
        }
    }
}

extension UserTimeoutSweep: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        var left = Self.share
        while left > 0, self.next < self.active.count {
            left -= 1
            let connection = self.active[self.next]
            // An idle one is removed, and another takes its index.
            if !connection.checkIdleOutput() { self.next += 1 }
        }
        guard let loop = self.active.first?.loop else { return }
        let isDone = self.next >= self.active.count
        if isDone { self.next = 0 }
        loop.arm(self.timer, after: isDone ? self.pause : .zero, target: self)
    }
}

/// Settings that decide when a connection's output is idle; small, because each connection has them.
struct UserTimeoutState {
    /// In milliseconds.
    private let timeout: UInt32
    private let idle: UInt32

    /// - Returns: `nil` where one of the two is off, or there is no TCP.
    init?(_ options: SocketOptions, peer: SocketAddress?) {
        guard let timeout = options.userTimeout, let idle = options.keepAliveIdle else { return nil }
        if case .unix? = peer { return nil }
        self.timeout = UInt32(clamping: timeout.clampedNanoseconds / 1_000_000)
        self.idle = UInt32(clamping: idle.clampedNanoseconds / 1_000_000)
    }

    var userTimeout: Duration { .milliseconds(self.timeout) }
    var pause: Duration { .milliseconds(max(self.idle / 2, 500)) }
}

/// Output activity with respect to the user timeout. The order counts: from `quiet` on, sending changes the state.
enum OutputActivity: UInt8 {
    /// The timeout stays as configured.
    case untouched
    /// Bytes were sent since the last look.
    case busy
    case quiet
    /// The user timeout is off meanwhile.
    case idle
}

extension SocketConnection {
    /// Counts bytes that the kernel took.
    func countSent(_ count: Int) {
        self.sent &+= UInt64(count)
        if self.outputActivity.rawValue >= OutputActivity.quiet.rawValue { self.endIdleOutput() }
    }

    /// Applies the user timeout again. Not inlined: rare.
    @inline(never)
    func endIdleOutput() {
        let wasIdle = self.outputActivity == .idle
        self.outputActivity = .busy
        guard wasIdle, let terms = self.userTimeoutState else { return }
        self.loop.system.setUserTimeout(terms.userTimeout, of: self.descriptor)
        self.outputBegan()
    }

    /// From here on bytes may be unacknowledged.
    func outputBegan() {
        guard let terms = self.userTimeoutState, self.isLive else { return }
        self.outputActivity = .busy
        self.loop.userTimeoutSweep.add(self, pause: terms.pause)
    }

    /// Ends the sweeping of this connection and restores its options as configured.
    func removeFromSweep() {
        if self.outputActivity == .idle { self.endIdleOutput() }
        self.outputActivity = .untouched
        self.loop.userTimeoutSweep.remove(self)
    }

    /// - Returns: whether the output is idle from now on; the connection is then removed from the sweep.
    fileprivate func checkIdleOutput() -> Bool {
        let wasQuiet = self.outputActivity == .quiet
        self.outputActivity = .quiet
        guard wasQuiet, self.waiting == 0, self.loop.system.unacknowledgedBytes(of: self.descriptor) == 0 else {
            return false
        }
        self.loop.system.setUserTimeout(nil, of: self.descriptor)
        self.loop.userTimeoutSweep.remove(self)
        self.outputActivity = .idle
        return true
    }
}
