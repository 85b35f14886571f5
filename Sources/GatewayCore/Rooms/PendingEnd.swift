import StreamTransport

/// The end of a connection without a protocol, which waits for the results of its last messages: they come before those of
/// the client's next connection if that begins when this one has ended.
final class PendingEnd {
    /// Time for the results.
    private static let timeout: Duration = .seconds(5)

    private let loop: Loop
    private let timer = LoopTimer()
    private let end: () -> Void

    /// - Parameter end: called on the loop, once, unless the end is cancelled.
    init(on loop: Loop, _ end: @escaping () -> Void) {
        self.loop = loop
        self.end = end
        loop.arm(self.timer, after: Self.timeout, target: self)
    }

    /// All results have come.
    func finish() {
        self.loop.disarm(self.timer)
        self.end()
    }

    /// The connection is over.
    func cancel() { self.loop.disarm(self.timer) }
}

extension PendingEnd: TimerTarget {
    func timerFired(_ timer: LoopTimer) { self.end() }
}
