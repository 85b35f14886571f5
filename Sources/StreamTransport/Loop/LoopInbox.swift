import DequeModule
import Synchronization

/// Work that other threads hand to a loop, in the order of the calls.
///
/// Work cannot be refused here, since much of it answers somebody who waits: who hands over more than one piece for each
/// call of its own, connection or channel bounds it before.
final class LoopInbox: Sendable {
    enum Work: Sendable {
        case closure(@Sendable () -> Void)
        case job(UnownedJob)
    }

    private let waiting = Mutex<Deque<Work>>([])
    /// Read without the lock once a turn.
    private let filled = Atomic<Bool>(false)

    var isEmpty: Bool {
        !self.filled.load(ordering: .acquiring)
    }

    /// - Returns: whether the inbox was empty: only then must the loop be woken.
    func add(_ work: Work) -> Bool {
        self.waiting.withLock { list in
            list.append(work)
            return !self.filled.exchange(true, ordering: .acquiringAndReleasing)
        }
    }

    /// Takes the first `limit` pieces of work at most.
    func take(atMost limit: Int) -> [Work] {
        guard !self.isEmpty else { return [] }
        return self.waiting.withLock { list in
            guard list.count > limit else {
                self.filled.store(false, ordering: .releasing)
                defer { list = [] }
                return Array(list)
            }
            defer { list.removeFirst(limit) }
            return Array(list.prefix(limit))
        }
    }
}
