import Synchronization

/// Bounds how much work of one kind runs at the same time. From any thread.
package final class ConcurrencyLimit: Sendable {
    private let limit: Int
    private let running = Mutex(0)

    package init(_ limit: Int) {
        self.limit = limit
    }

    /// - Returns: what `work` returns; `nil` at the limit, and `work` does not run then.
    package func run<Value, Failure: Error>(
        _ work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value? {
        let isAllowed = self.running.withLock { running in
            guard running < self.limit else { return false }
            running += 1
            return true
        }
        guard isAllowed else { return nil }
        defer { self.running.withLock { $0 -= 1 } }
        return try await work()
    }
}
