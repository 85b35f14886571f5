import Synchronization

/// How much content all transfers hold in memory.
final class TransferMemory: Sendable {
    private let held = Mutex(0)

    /// - Returns: `false` where that would be more than `limit` in all; nothing is taken then.
    func reserve(_ count: Int, limit: Int) -> Bool {
        self.held.withLock { held in
            guard held + count <= limit else { return false }
            held += count
            return true
        }
    }

    func release(_ count: Int) {
        self.held.withLock { $0 = max(0, $0 - count) }
    }
}
