import Synchronization

/// Counts the turns of a loop that took too long, during which the loop's other connections waited. Debug builds also
/// measure each piece of a turn's work and name the slow ones.
final class SlowTurns {
    /// Turns longer than this are counted.
    static let limit = Duration.milliseconds(5)
    /// Slow pieces of work are reported at most this often.
    static let reportInterval = Duration.seconds(1)

    private let counted = Atomic<UInt64>(0)
    /// Set on the loop; `nil` reports nothing.
    var observer: ((SlowWork) -> Void)?
    private var pieceBegan = MonotonicInstant(nanoseconds: 0)
    private var nextReport = MonotonicInstant(nanoseconds: 0)

    /// From any thread.
    var count: UInt64 { self.counted.load(ordering: .relaxed) }

    func turnEnded(after duration: Duration) {
        guard duration > Self.limit else { return }
        // Only the loop writes: no atomic addition is needed.
        self.counted.store(self.count &+ 1, ordering: .relaxed)
    }

    func turnBegan(at now: MonotonicInstant) {
        self.pieceBegan = now
    }

    /// A piece of work has ended, which began with the turn or when the piece before it ended.
    func pieceEnded(_ worker: Any.Type, at now: MonotonicInstant) {
        let duration = self.pieceBegan.duration(to: now)
        self.pieceBegan = now
        guard duration > Self.limit, now >= self.nextReport, let observer = self.observer else { return }
        self.nextReport = now.advanced(by: Self.reportInterval)
        observer(SlowWork(worker: "\(worker)", duration: duration))
    }
}

/// A piece of work that kept a loop busy for too long.
package struct SlowWork: Sendable, Hashable {
    /// Type of the object that the loop called.
    package let worker: String
    package let duration: Duration
}
