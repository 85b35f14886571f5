/// Notices when the way to an address may have changed: routes, addresses, links and rules of this machine, and which
/// interfaces are metered, if that matters.
///
/// One for each loop. The kernel's notifications are received on the loop itself, by a socket that is open only while
/// there are observers.
package final class PathMonitor {
    /// Changes come in groups: observers are called so long after the first one.
    package static let settling = Duration.milliseconds(50)
    /// How often observers are called where the kernel gives no notifications.
    package static let pollInterval = Duration.seconds(2)
    /// Datagrams received in one turn; more wait for the next.
    private static let datagramsPerTurn = 16
    /// More than the kernel puts into one notification.
    private static let datagramLimit = 32 << 10

    private let loop: Loop
    private var changes = NetworkChanges()
    private var observers: [ObjectIdentifier: any PathObserver] = [:]
    private var source: (descriptor: Descriptor, token: UInt64)?
    private let timer = LoopTimer()
    private var isTimerArmed = false
    /// What NetworkManager says about interfaces; nothing before something depends on it.
    package private(set) lazy var metered = MeteredMonitor(
        on: self.loop, isHeld: { [weak self] in self?.observers.isEmpty == false },
        didChange: { [weak self] in self?.classesChanged() })

    private init(on loop: Loop) {
        self.loop = loop
    }

    package static func shared(on loop: Loop) -> PathMonitor {
        loop.local(PathMonitor.self) { PathMonitor(on: loop) }
    }

    /// Retains `observer` until it is removed.
    package func add(_ observer: any PathObserver) {
        self.observers[ObjectIdentifier(observer)] = observer
        if self.source == nil { self.open() }
    }

    /// Does nothing if it was not added.
    package func remove(_ observer: any PathObserver) {
        guard self.observers.removeValue(forKey: ObjectIdentifier(observer)) != nil else { return }
        if self.observers.isEmpty { self.close() }
    }

    package var observerCount: Int { self.observers.count }

    private func classesChanged() {
        if !self.observers.isEmpty { self.armTimer() }
    }

    // MARK: The kernel's notifications

    private func open() {
        guard case .success(let descriptor) = self.loop.system.openPathNotifications() else { return self.armTimer() }
        switch self.loop.watch(descriptor, for: .readable, self) {
        case .success(let token):
            self.source = (descriptor, token)
            // What changed before is not notified.
            self.armTimer()
        case .failure:
            self.loop.system.close(descriptor)
            self.armTimer()
        }
    }

    private func close() {
        self.closeSource()
        self.loop.disarm(self.timer)
        self.isTimerArmed = false
    }

    private func closeSource() {
        guard let (descriptor, token) = self.source.take() else { return }
        self.changes.lost()
        self.loop.unwatch(descriptor, token: token)
        self.loop.system.close(descriptor)
    }

    private func receive(_ descriptor: Descriptor) {
        for _ in 0..<Self.datagramsPerTurn {
            let count = self.loop.receive(descriptor, at: 0..<Self.datagramLimit)
            if count > 0 {
                let changed = self.loop.receiveBuffer.lend(0..<count) { self.changes.received($0.bytes) }
                if changed { self.armTimer() }
                continue
            }
            switch SystemError(Int32(truncatingIfNeeded: -count)) {
            case .wouldBlock: return
            case .interrupted: continue
            // The socket's buffer was full: whatever may have changed.
            case .noBuffers:
                self.changes.lost()
                self.armTimer()
            default:
                self.closeSource()
                return self.armTimer()
            }
        }
    }

    private func armTimer() {
        guard !self.isTimerArmed else { return }
        self.isTimerArmed = true
        let interval = self.source == nil ? Self.pollInterval : Self.settling
        self.loop.arm(self.timer, after: interval, target: self)
    }
}

extension PathMonitor: Watchable {
    package func ready(_ events: Interest) {
        if let descriptor = self.source?.descriptor { self.receive(descriptor) }
    }
}

extension PathMonitor: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.isTimerArmed = false
        if self.source == nil { self.open() }
        // Observers may remove themselves and others meanwhile.
        for (identity, observer) in self.observers where self.observers[identity] != nil { observer.pathsChanged() }
    }
}

/// Awaits changes of this machine's networks.
package protocol PathObserver: AnyObject {
    /// On the loop. The way to any address may be another one now; calls are at least `PathMonitor.settling` apart.
    func pathsChanged()
}
