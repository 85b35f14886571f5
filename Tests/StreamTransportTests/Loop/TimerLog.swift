import StreamTransport

/// Remembers which timers fired, and when.
final class TimerLog: TimerTarget {
    private let loop: Loop
    private var names: [ObjectIdentifier: String] = [:]
    private(set) var fired: [String] = []
    private(set) var instants: [MonotonicInstant] = []
    var onFire: (LoopTimer) -> Void = { _ in }

    init(_ loop: Loop) {
        self.loop = loop
    }

    func timer(_ name: String) -> LoopTimer {
        let timer = LoopTimer()
        self.names[ObjectIdentifier(timer)] = name
        return timer
    }

    func timerFired(_ timer: LoopTimer) {
        self.fired.append(self.names[ObjectIdentifier(timer)] ?? "?")
        self.instants.append(self.loop.system.now())
        self.onFire(timer)
    }
}
