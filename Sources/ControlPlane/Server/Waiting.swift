/// Waits with a bound.
enum Waiting {
    /// Runs `work`, which must heed cancellation, and cancels it when the time is over.
    /// - Returns: what it gave, even if that came just at the end; `nil` if it gave nothing in time.
    /// - Throws: what `work` throws before the end.
    static func atMost<Value: Sendable>(
        _ limit: Duration, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            let first = try await group.next() ?? nil
            group.cancelAll()
            if let first { return first }
            // Cancelled, the work may still have come to its end; what it gave must not be lost.
            guard case .success(let late)? = await group.nextResult() else { return nil }
            return late
        }
    }

    /// Waits for somebody to call back who may never do so.
    /// - Returns: whether that happened in time.
    static func forCall(within limit: Duration, _ begin: (@escaping @Sendable () -> Void) -> Void) async -> Bool {
        await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let box = CallBox(continuation)
            begin { box.answer(true) }
            Task {
                try? await Task.sleep(for: limit)
                box.answer(false)
            }
        }
    }
}

extension Waiting {
    /// Waits for `work`, which goes on when the time is over.
    /// - Returns: `nil` when the time was over first.
    static func forOutcome<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let running = Task { await work() }
        let isDone = await self.forCall(within: limit) { answer in
            Task {
                _ = await running.value
                answer()
            }
        }
        return isDone ? await running.value : nil
    }
}
