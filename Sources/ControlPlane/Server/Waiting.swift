import Synchronization

/// Something that happens once, for which any number of tasks may wait.
final class OneTimeEvent: Sendable {
    private struct State {
        var hasOccurred = false
        var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
        var last: UInt64 = 0
    }

    private let state = Mutex(State())

    var hasOccurred: Bool { self.state.withLock { $0.hasOccurred } }

    func occur() {
        let waiting = self.state.withLock { state in
            state.hasOccurred = true
            defer { state.waiting = [:] }
            return state.waiting
        }
        for continuation in waiting.values { continuation.resume() }
    }

    /// - Returns: `false` if the wait was cancelled.
    @discardableResult
    func wait() async -> Bool {
        let number = self.state.withLock { state in
            state.last += 1
            return state.last
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = self.state.withLock { state in
                    let isDone = state.hasOccurred || Task.isCancelled
                    if !isDone { state.waiting[number] = continuation }
                    return isDone
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            self.state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
        }
        return self.hasOccurred
    }

    /// - Returns: `false` if it does not happen in time.
    @discardableResult
    func wait(within limit: Duration) async -> Bool {
        (try? await Waiting.withTimeout(limit) { await self.wait() }) ?? false
    }
}

/// Waits with a timeout.
enum Waiting {
    /// Runs `work`, which must react to cancellation, and cancels it at the timeout.
    /// - Returns: its result, even if it arrives during cancellation; `nil` on timeout.
    /// - Throws: what `work` throws before the timeout.
    static func withTimeout<Value: Sendable>(
        _ limit: Duration, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value? {
        try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                try? await self.sleep(for: limit)
                return nil
            }
            let first = try await group.next() ?? nil
            group.cancelAll()
            if let first { return first }
            // Work that completes despite cancellation must not lose its result.
            guard case .success(let late)? = await group.nextResult() else { return nil }
            return late
        }
    }

    /// The longest step of `sleep`.
    private static let longestStep = Duration.seconds(60)

    /// Sleeps, unless the task is cancelled.
    ///
    /// The runtime keeps the timer of a cancelled sleep, some 700 bytes, until the time at which it would have ended. The
    /// steps grow with the time that has passed, so that it is kept for no longer than the sleep lasted, or a second.
    static func sleep(for duration: Duration) async throws {
        let start = ContinuousClock.now
        let end = start.advanced(by: duration)
        var now = start
        while now < end {
            let step = min(max(.seconds(1), now - start), self.longestStep)
            try await Task.sleep(until: min(end, now.advanced(by: step)), clock: .continuous)
            now = .now
        }
    }

    /// Waits for a callback that may never come.
    /// - Returns: whether it arrived in time.
    static func forCallback(within limit: Duration, _ begin: (@escaping @Sendable () -> Void) -> Void) async -> Bool {
        let event = OneTimeEvent()
        begin { event.occur() }
        return await event.wait(within: limit)
    }

    /// Waits for work that does not react to cancellation, and continues after the timeout.
    /// - Returns: `nil` on timeout.
    static func forResult<Value: Sendable>(
        within limit: Duration, of work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        let (results, continuation) = AsyncStream.makeStream(of: Value.self)
        Task {
            continuation.yield(await work())
            continuation.finish()
        }
        return try? await self.withTimeout(limit) { await results.first { _ in true } } ?? nil
    }

    /// Evaluates `condition` repeatedly until it holds, the time is over or the task is cancelled.
    /// - Returns: whether the condition holds.
    @discardableResult
    static func poll(within limit: Duration, until condition: () async -> Bool) async -> Bool {
        let deadline = ContinuousClock.now.advanced(by: limit)
        var pause = Duration.milliseconds(1)
        while !(await condition()) {
            guard ContinuousClock.now < deadline, (try? await Task.sleep(for: pause)) != nil else { return false }
            pause = min(pause * 2, .milliseconds(50))
        }
        return true
    }
}
