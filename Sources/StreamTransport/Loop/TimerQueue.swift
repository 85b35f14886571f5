import HeapModule

/// Timers of one loop in the order in which they are due.
///
/// Moving a deadline later touches only the timer: its entry in the heap fires early, is seen to be early, and is
/// queued again. So a connection that moves its deadline with every read costs one heap operation per timeout, not one
/// per read. Entries that lost their meaning are swept out when they are the greater part: short-lived connections with
/// a deadline of a day would fill the memory else.
struct TimerQueue {
    private struct Entry: Comparable {
        let at: MonotonicInstant
        let order: UInt64
        let timer: LoopTimer

        static func < (left: Entry, right: Entry) -> Bool {
            left.at != right.at ? left.at < right.at : left.order < right.order
        }

        static func == (left: Entry, right: Entry) -> Bool {
            left.order == right.order
        }
    }

    private var heap = Heap<Entry>()
    private var order: UInt64 = 0
    /// Entries without effect: their timer was disarmed or armed again for an earlier deadline.
    private var stale = 0

    /// Entries in the queue, stale ones included.
    var count: Int {
        self.heap.count
    }

    /// Deadline of the next entry, which may be stale.
    var nextDeadline: MonotonicInstant? {
        self.heap.min?.at
    }

    mutating func arm(_ timer: LoopTimer, at deadline: MonotonicInstant, target: any TimerTarget) {
        if timer.due == nil, timer.queuedAt != .distantFuture { self.stale -= 1 }
        timer.due = deadline
        timer.target = target
        guard deadline < timer.queuedAt else { return }
        if timer.queuedAt != .distantFuture { self.stale += 1 }
        self.enqueue(timer, at: deadline)
    }

    mutating func disarm(_ timer: LoopTimer) {
        if timer.due != nil, timer.queuedAt != .distantFuture { self.stale += 1 }
        timer.due = nil
        timer.target = nil
        if self.stale > 64, self.stale > self.heap.count / 2 { self.sweep() }
    }

    private mutating func sweep() {
        var kept: [Entry] = []
        for entry in self.heap.unordered where entry.timer.queuedAt == entry.at {
            if entry.timer.due != nil { kept.append(entry) } else { entry.timer.queuedAt = .distantFuture }
        }
        self.heap = Heap(kept)
        self.stale = 0
    }

    private mutating func enqueue(_ timer: LoopTimer, at deadline: MonotonicInstant) {
        self.order &+= 1
        timer.queuedAt = deadline
        self.heap.insert(Entry(at: deadline, order: self.order, timer: timer))
    }

    /// Removes and disarms the next timer due at `now`.
    /// - Returns: the timer with its target; `nil` if none is due.
    mutating func popDue(_ now: MonotonicInstant) -> (LoopTimer, any TimerTarget)? {
        while let entry = self.heap.min, entry.at <= now {
            self.heap.removeMin()
            let timer = entry.timer
            // An entry that was overtaken by an earlier one of the same timer says nothing.
            guard timer.queuedAt == entry.at else {
                self.stale = max(0, self.stale - 1)
                continue
            }
            timer.queuedAt = .distantFuture
            guard let deadline = timer.due, let target = timer.target else {
                self.stale = max(0, self.stale - 1)
                continue
            }
            guard deadline <= now else {
                self.enqueue(timer, at: deadline)
                continue
            }
            timer.due = nil
            timer.target = nil
            return (timer, target)
        }
        return nil
    }
}

/// One deadline on a loop, cheap to move: an owner keeps one timer and moves it at every sign of life.
package final class LoopTimer {
    /// As `deadline`, stored apart from what other modules see of it: what only this module touches costs no check of
    /// exclusive access.
    var due: MonotonicInstant?
    /// The earliest entry for this timer in the queue; `distantFuture` when there is none.
    var queuedAt = MonotonicInstant.distantFuture
    var target: (any TimerTarget)?

    package init() {}

    /// Deadline; `nil` while the timer is not armed.
    package var deadline: MonotonicInstant? { self.due }
}

/// Called when a timer fires.
package protocol TimerTarget: AnyObject {
    /// The timer is no longer armed. Called on the loop.
    func timerFired(_ timer: LoopTimer)
}

/// A point on the loop's clock, which never goes back: the system's CLOCK_MONOTONIC, or virtual time in a simulation.
package struct MonotonicInstant: InstantProtocol, Hashable, Sendable {
    /// Nanoseconds since an origin that differs from boot to boot.
    package var nanoseconds: Int64

    @inlinable
    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Later than any instant that a loop will live to see.
    package static let distantFuture = MonotonicInstant(nanoseconds: .max)

    /// The instant `duration` later; stops at `distantFuture` instead of overflowing.
    @inlinable
    package func advanced(by duration: Duration) -> MonotonicInstant {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(duration.clampedNanoseconds)
        return MonotonicInstant(nanoseconds: overflow ? .max : sum)
    }

    @inlinable
    package func duration(to other: MonotonicInstant) -> Duration {
        .nanoseconds(other.nanoseconds &- self.nanoseconds)
    }

    @inlinable
    package static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

/// A point on the clock that advances while the machine sleeps: CLOCK_BOOTTIME.
///
/// Its layout is known when a program is built. That of `ContinuousClock.Instant` is not: all types that contain one would
/// be copied and destroyed by calls of the runtime.
package struct ContinuousInstant: InstantProtocol, Hashable, Sendable {
    private let nanoseconds: Int64

    init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// Stops at the largest instant instead of overflowing.
    package func advanced(by duration: Duration) -> ContinuousInstant {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(duration.clampedNanoseconds)
        return ContinuousInstant(nanoseconds: overflow ? .max : sum)
    }

    package func duration(to other: ContinuousInstant) -> Duration {
        .nanoseconds(other.nanoseconds &- self.nanoseconds)
    }

    package static func + (instant: ContinuousInstant, duration: Duration) -> ContinuousInstant {
        instant.advanced(by: duration)
    }

    package static func - (later: ContinuousInstant, earlier: ContinuousInstant) -> Duration {
        earlier.duration(to: later)
    }

    package static func < (left: ContinuousInstant, right: ContinuousInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// Whole nanoseconds, held to the range of `Int64` (about ±292 years).
    @inlinable
    package var clampedNanoseconds: Int64 {
        let attoseconds = self.attoseconds
        // 10^9 is 2^9 times 5^9: up to an hour a division of 64 bits does, which costs a tenth of one of 128.
        if attoseconds >= 0, let halved = UInt64(exactly: attoseconds >> 9) { return Int64(halved / 1_953_125) }
        return Int64(clamping: attoseconds / 1_000_000_000)
    }
}
