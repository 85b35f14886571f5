import ByteKernels
import Synchronization

/// Knows which network interfaces NetworkManager calls metered, while connections depend on it. Confined to its loop.
///
/// The connection to the system bus is opened when it is first needed, and closed a while after the last use. Without a
/// bus, without NetworkManager, and while neither answers, no interface is metered.
package final class MeteredMonitor {
    /// How long a connection waits for the first answer.
    package static let firstAnswerTimeout = Duration.milliseconds(500)
    /// How long another reading may take; then the bus is given up.
    package static let readingTimeout = Duration.seconds(5)
    /// Changes come in groups: devices are asked so long after the first one.
    package static let settling = Duration.milliseconds(200)
    /// How often a bus that was given up is tried again, and whether the monitor is still used is checked.
    package static let checkInterval = Duration.seconds(30)
    /// So long after the last use the connection to the bus is closed, at the next check.
    package static let idleTimeout = Duration.seconds(60)
    /// Bytes received in one turn.
    private static let readLimit = 16 << 10

    private enum State {
        case closed
        case connecting(ConnectAttempt)
        case connected(SocketConnection)
        /// Tried again at the next check.
        case failed
    }

    private static let hasBeenUsed = Atomic(false)
    /// Whether a connection of this process depended on it, on any loop.
    package static var wasUsed: Bool { self.hasBeenUsed.load(ordering: .relaxed) }

    private let loop: Loop
    private let bus: SocketAddress?
    private let patience: Duration
    private let didChange: () -> Void
    private let isHeld: () -> Bool
    private var state = State.closed
    /// Of the current connection.
    private var devices = MeteredDevices()
    private var isKnown = false
    private var waiting: [() -> Void] = []
    private var lastUse: MonotonicInstant
    /// As last read; none before the first reading.
    package private(set) var networks = MeteredNetworks()
    /// Until a reading is complete.
    private let deadline = LoopTimer()
    private let reading = LoopTimer()
    private let check = LoopTimer()

    /// - Parameters:
    ///   - bus: `nil` for that of the system.
    ///   - patience: how long the first answer may take.
    ///   - didChange: called when other interfaces are metered than before.
    ///   - isHeld: whether changes are awaited, although nothing calls `whenKnown`.
    package init(
        on loop: Loop, bus: SocketAddress? = nil, patience: Duration = MeteredMonitor.firstAnswerTimeout,
        isHeld: @escaping () -> Bool, didChange: @escaping () -> Void
    ) {
        self.loop = loop
        self.bus = bus
        self.patience = patience
        self.isHeld = isHeld
        self.didChange = didChange
        self.lastUse = loop.now
    }

    /// Calls `body` when `networks` is known: now or, at the first use, after at most `firstAnswerTimeout`.
    package func whenKnown(_ body: @escaping () -> Void) {
        Self.hasBeenUsed.store(true, ordering: .relaxed)
        self.lastUse = self.loop.now
        if case .closed = self.state { self.open() }
        if self.isKnown { body() } else { self.waiting.append(body) }
    }

    /// Forgets everything, and closes the connection to the bus.
    package func close() {
        for timer in [self.deadline, self.reading, self.check] { self.loop.disarm(timer) }
        self.leave(.closed)
        self.networks = MeteredNetworks()
        self.isKnown = false
    }

    // MARK: The bus

    private func open() {
        self.loop.arm(self.check, after: Self.checkInterval, target: self)
        guard let address = self.bus ?? self.loop.system.systemBus else { return self.fail() }
        self.loop.arm(self.deadline, after: self.patience, target: self)
        let attempt = ConnectAttempt(.address(address), on: self.loop, timeout: self.patience) { result in
            switch result {
            case .success(let connection): self.connected(connection)
            case .failure: self.fail()
            }
        }
        self.state = .connecting(attempt)
    }

    private func connected(_ connection: SocketConnection) {
        connection.consumer = self
        connection.readLimit = Self.readLimit
        self.devices = MeteredDevices()
        self.state = .connected(connection)
        self.advance()
        connection.resumeReading()
    }

    private func advance() {
        do throws(BusViolation) {
            while case .connected(let connection) = self.state, let action = try self.devices.nextAction() {
                self.perform(action, on: connection)
            }
        } catch {
            self.fail()
        }
    }

    private func perform(_ action: MeteredDevices.Action, on connection: SocketConnection) {
        switch action {
        case .send(let bytes): bytes.withRawSpan { _ = connection.write($0) }
        case .publish(let networks):
            self.loop.disarm(self.deadline)
            self.learn(networks)
        case .readLater: self.loop.arm(self.reading, after: Self.settling, target: self)
        }
    }

    /// There is no bus, or one that cannot be used.
    private func fail() {
        self.loop.disarm(self.deadline)
        self.loop.disarm(self.reading)
        self.leave(.failed)
        self.learn(MeteredNetworks())
    }

    private func leave(_ next: State) {
        let state = self.state
        self.state = next
        switch state {
        case .connecting(let attempt): attempt.cancel()
        case .connected(let connection):
            connection.consumer = nil
            connection.reset()
        case .closed, .failed: break
        }
    }

    private func learn(_ networks: MeteredNetworks) {
        let hasChanged = networks.interfaces != self.networks.interfaces
        self.networks = networks
        self.isKnown = true
        let waiting = self.waiting
        self.waiting = []
        for body in waiting { body() }
        if hasChanged { self.didChange() }
    }

    private func checkUse() {
        guard self.isHeld() || self.loop.now < self.lastUse.advanced(by: Self.idleTimeout) else { return self.close() }
        switch self.state {
        case .failed, .closed: self.open()
        case .connecting, .connected: self.loop.arm(self.check, after: Self.checkInterval, target: self)
        }
    }
}

extension MeteredMonitor: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        if timer === self.check { return self.checkUse() }
        if timer === self.deadline { return self.fail() }
        self.loop.arm(self.deadline, after: Self.readingTimeout, target: self)
        self.devices.readAgain()
        self.advance()
    }
}

extension MeteredMonitor: TransportConsumer {
    package var unconsumedBytes: Int { 0 }

    package func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        let count = bytes.byteCount
        self.loop.spend(count)
        self.devices.bytesReceived(bytes.bytes)
        self.advance()
        return count
    }

    package func inputClosed() { self.fail() }

    package func outputProgressed() {}

    package func transportEnded(_ end: TransportEnd) { self.fail() }
}

extension MeteredMonitor {
    /// Asks NetworkManager once, without a loop, whether most of the machine's traffic is paid for or limited. Waits at
    /// most `patience`; `false` without an answer.
    /// - Parameter bus: `nil` for that of the system.
    package static func isMachineMetered(
        at bus: SocketAddress? = nil, patience: Duration = MeteredMonitor.firstAnswerTimeout
    ) -> Bool {
        guard let system = try? LinuxSystem() else { return false }
        let loop = Loop(system: system)
        let monitor = MeteredMonitor(on: loop, bus: bus, patience: patience, isHeld: { false }, didChange: {})
        var isDone = false
        monitor.whenKnown { isDone = true }
        while !isDone { loop.turn() }
        let isMetered = monitor.networks.isMachineMetered
        monitor.close()
        // Closes the connection; without the wake-up the turn would wait for the next timer, even a disarmed one.
        system.wake()
        loop.turn()
        return isMetered
    }
}
