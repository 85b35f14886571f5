import StreamTransport

/// Repeats attempts to connect when this machine's networks have changed. Confined to its loop.
package final class PathWait {
    /// After a change, name servers may become known, or answer, a little later than the route to them: so often, and at
    /// this interval, a lookup that failed is repeated.
    package static let lookupRepetitions = 5
    package static let lookupInterval = Duration.seconds(1)

    private let loop: Loop
    private let timer = LoopTimer()
    private let isHeld: () -> Bool
    private var retry: (() -> Void)?
    private var isObserving = false
    private var lookupsLeft = PathWait.lookupRepetitions
    /// Since the latest attempt began; it may have failed before.
    private var hasChanged = false

    /// - Parameter isHeld: whether no attempt is made, as for a task that is suspended; `resume` ends that.
    package init(on loop: Loop, isHeld: @escaping () -> Bool) {
        self.loop = loop
        self.isHeld = isHeld
    }

    /// - Parameter retry: called once, in a later turn, unless `end` comes first.
    /// - Returns: whether the failure is one to wait after; otherwise nothing is awaited any more.
    package func wait(after failure: TransportFailure, retry: @escaping () -> Void) -> Bool {
        let isOffline = failure.isOffline
        guard isOffline || self.isObserving && self.lookupsLeft > 0 && failure.isTemporaryLookupFailure else {
            self.end()
            return false
        }
        self.retry = retry
        if !self.isObserving {
            self.isObserving = true
            let monitor = PathMonitor.shared(on: self.loop)
            // The monitor reports a change when its first observer comes. One that the others have seen before concerns
            // this observer as well.
            if monitor.observerCount > 0 { self.hasChanged = true }
            monitor.add(self)
        }
        if !isOffline { self.lookupsLeft -= 1 }
        if !isOffline || self.hasChanged {
            let interval = isOffline ? PathMonitor.settling : Self.lookupInterval
            self.loop.arm(self.timer, after: interval, target: self)
        }
        return true
    }

    /// Makes the attempt that was held, if there is one.
    package func resume() {
        if self.hasChanged { self.proceed() }
    }

    /// A connection is established, or none is wanted any more.
    package func end() {
        self.retry = nil
        self.loop.disarm(self.timer)
        guard self.isObserving else { return }
        self.isObserving = false
        PathMonitor.shared(on: self.loop).remove(self)
    }

    private func proceed() {
        self.hasChanged = true
        guard self.retry != nil, !self.isHeld() else { return }
        self.hasChanged = false
        self.loop.disarm(self.timer)
        self.retry.take()?()
    }
}

extension PathWait: PathObserver {
    package func pathsChanged() {
        self.lookupsLeft = Self.lookupRepetitions
        self.proceed()
    }
}

extension PathWait: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.proceed()
    }
}

extension TransportFailure {
    /// The failure to reach the proxy, if there is one.
    private var firstHop: TransportFailure {
        if case .connection(let failure)? = self.proxyFailure { failure } else { self }
    }

    /// Whether this machine's own networks lead neither to the server, or its proxy, nor to a name server.
    package var isOffline: Bool {
        switch self.firstHop {
        case .offline, .nameResolution(.noRoute): true
        default: false
        }
    }

    /// The classes that kept all interfaces that lead there from being used; empty otherwise.
    package var forbiddenClasses: InterfaceClasses {
        if case .offline(.forbidden(let classes)) = self.firstHop { classes } else { [] }
    }

    fileprivate var isTemporaryLookupFailure: Bool {
        if case .nameResolution(.temporarilyUnavailable) = self.firstHop { true } else { false }
    }
}
