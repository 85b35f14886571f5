import HeapModule

/// Timers of one loop in the order in which they are due.
///
/// Moving a deadline later touches only the timer: its entry in the heap fires early, is seen to be early, and is
/// queued anew. So a connection that moves its deadline with every read costs one heap operation per timeout, not one
/// per read.
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

    /// When the next entry is due; it may turn out to be early.
    var nextDeadline: MonotonicInstant? {
        self.heap.min?.at
    }

    mutating func arm(_ timer: LoopTimer, at deadline: MonotonicInstant, target: any TimerTarget) {
        timer.deadline = deadline
        timer.target = target
        guard deadline < timer.queuedAt else { return }
        self.enqueue(timer, at: deadline)
    }

    func disarm(_ timer: LoopTimer) {
        timer.deadline = nil
        timer.target = nil
    }

    private mutating func enqueue(_ timer: LoopTimer, at deadline: MonotonicInstant) {
        self.order &+= 1
        timer.queuedAt = deadline
        self.heap.insert(Entry(at: deadline, order: self.order, timer: timer))
    }

    /// Takes the next timer that is due at `now`, disarmed, with the target to tell.
    mutating func popDue(_ now: MonotonicInstant) -> (LoopTimer, any TimerTarget)? {
        while let entry = self.heap.min, entry.at <= now {
            self.heap.removeMin()
            let timer = entry.timer
            // An entry that was overtaken by an earlier one of the same timer says nothing.
            guard timer.queuedAt == entry.at else { continue }
            timer.queuedAt = .distantFuture
            guard let deadline = timer.deadline, let target = timer.target else { continue }
            guard deadline <= now else {
                self.enqueue(timer, at: deadline)
                continue
            }
            timer.deadline = nil
            timer.target = nil
            return (timer, target)
        }
        return nil
    }
}
