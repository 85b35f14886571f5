/// Takes the user timeout off a connection whose output rests, and puts it back with the next bytes.
///
/// In Linux `TCP_USER_TIMEOUT` takes the place of the number of keep-alive probes (tcp(7)): an idle connection whose peer is
/// gone would end after the user timeout, whatever keep-alive says. So it is in force only while bytes may be
/// unacknowledged. An idle peer that is gone is then noticed after `idle + probes × interval`, a busy one after the user
/// timeout, both by the kernel's own clock.
///
/// Looks every half of keep-alive's idle time, long before the kernel would judge by the first probe, and only while
/// output does not rest. So a connection costs at most three system calls in that time, however much is sent, and one
/// that rests neither a call nor a timer.
final class RestingOutput {
    /// What a connection needs to know for it; small, because each has it.
    struct Terms {
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

    /// Held until the output rests or the connection ends.
    private let connection: SocketConnection
    private let timer = LoopTimer()
    /// Bytes sent when last looked.
    private var sent: UInt64

    init(_ connection: SocketConnection) {
        self.connection = connection
        self.sent = connection.sent
    }

    func start(_ pause: Duration) {
        self.connection.loop.arm(self.timer, after: pause, target: self)
    }

    func stop() {
        self.connection.loop.disarm(self.timer)
    }
}

extension RestingOutput: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        let connection = self.connection
        guard let terms = connection.resting, connection.isLive else { return }
        let isQuiet = connection.sent == self.sent && connection.waiting == 0
        if isQuiet, connection.loop.system.unacknowledgedBytes(of: connection.descriptor) == 0 {
            connection.loop.system.setUserTimeout(nil, of: connection.descriptor)
            connection.activeOutput = nil
            connection.rests = true
        } else {
            self.sent = connection.sent
            self.start(terms.pause)
        }
    }
}

extension SocketConnection {
    /// Counts bytes that the kernel took.
    func countSent(_ count: Int) {
        self.sent &+= UInt64(count)
        if self.rests { self.endRest() }
    }

    /// The user timeout is in force again. Not inlined: rare.
    @inline(never)
    func endRest() {
        guard let terms = self.resting else { return }
        self.rests = false
        self.loop.system.setUserTimeout(terms.userTimeout, of: self.descriptor)
        self.watchOutput()
    }

    /// From here on bytes may be unacknowledged.
    func watchOutput() {
        guard let terms = self.resting, self.activeOutput == nil, self.isLive else { return }
        let output = RestingOutput(self)
        self.activeOutput = output
        output.start(terms.pause)
    }
}
