import Synchronization

/// Work that other threads hand to a loop.
final class LoopInbox: Sendable {
    enum Work: Sendable {
        case closure(@Sendable () -> Void)
        case job(UnownedJob)
    }

    private let waiting = Mutex<[Work]>([])
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

    func takeAll() -> [Work] {
        guard !self.isEmpty else { return [] }
        return self.waiting.withLock { list in
            self.filled.store(false, ordering: .releasing)
            defer { list = [] }
            return list
        }
    }
}
