/// Takes the user timeout off connections whose output rests, and puts it back with their next bytes; one for a loop.
///
/// In Linux `TCP_USER_TIMEOUT` takes the place of the number of keep-alive probes (tcp(7)): an idle connection whose peer is
/// gone would end after the user timeout, whatever keep-alive says. So it is in force only while bytes may be
/// unacknowledged. An idle peer that is gone is then noticed after `idle + probes × interval`, a busy one after the user
/// timeout, both by the kernel's own clock.
///
/// Looks at all connections whose output does not rest every half of keep-alive's idle time, the shortest among them: long
/// before the kernel would judge by the first probe. So a connection costs at most two system calls in that time, however
/// much is sent, and one that rests costs neither a call nor memory.
final class UserTimeoutSweep {
    /// Connections looked at in a turn.
    private static let share = 256

    /// Those whose bytes may be unacknowledged; each knows its place.
    private var active: [SocketConnection] = []
    /// Where to go on in the round under way.
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
            // Another takes the place of one that is found at rest.
            if !connection.checkIdleOutput() { self.next += 1 }
        }
        guard let loop = self.active.first?.loop else { return }
        let isDone = self.next >= self.active.count
        if isDone { self.next = 0 }
        loop.arm(self.timer, after: isDone ? self.pause : .zero, target: self)
    }
}

/// When a connection's output rests; small, because each has it.
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

/// How a connection's output stands to its user timeout. The order counts: from `quiet` on, the next bytes change it.
enum OutputActivity: UInt8 {
    /// The timeout stays as it was asked for.
    case untouched
    /// Bytes were sent since the last look.
    case busy
    case quiet
    /// The user timeout is off meanwhile.
    case resting
}

extension SocketConnection {
    /// Counts bytes that the kernel took.
    func countSent(_ count: Int) {
        self.sent &+= UInt64(count)
        if self.outputActivity.rawValue >= OutputActivity.quiet.rawValue { self.endIdleOutput() }
    }

    /// The user timeout is in force again. Not inlined: rare.
    @inline(never)
    func endIdleOutput() {
        let wasResting = self.outputActivity == .resting
        self.outputActivity = .busy
        guard wasResting, let terms = self.userTimeoutState else { return }
        self.loop.system.setUserTimeout(terms.userTimeout, of: self.descriptor)
        self.outputBegan()
    }

    /// From here on bytes may be unacknowledged.
    func outputBegan() {
        guard let terms = self.userTimeoutState, self.isLive else { return }
        self.outputActivity = .busy
        self.loop.restingOutputs.add(self, pause: terms.pause)
    }

    /// Nobody looks any more; the options are as they were asked for.
    func removeFromSweep() {
        if self.outputActivity == .resting { self.endIdleOutput() }
        self.outputActivity = .untouched
        self.loop.restingOutputs.remove(self)
    }

    /// - Returns: whether the output rests from now on; the connection then is looked at no more.
    fileprivate func checkIdleOutput() -> Bool {
        let wasQuiet = self.outputActivity == .quiet
        self.outputActivity = .quiet
        guard wasQuiet, self.waiting == 0, self.loop.system.unacknowledgedBytes(of: self.descriptor) == 0 else {
            return false
        }
        self.loop.system.setUserTimeout(nil, of: self.descriptor)
        self.loop.restingOutputs.remove(self)
        self.outputActivity = .resting
        return true
    }
}
