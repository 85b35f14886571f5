import StreamTransport

/// Joins an awaiting Swift task with the operation it waits for. Isolated to the loop, so cancellation either comes before
/// the operation began, finds its number, or comes too late: never in between.
package final class AwaitedOperation {
    private var isCancelled = false
    private var number: UInt64?

    /// - Returns: the number of the operation to withdraw, if it has begun.
    private func cancel() -> UInt64? {
        self.isCancelled = true
        return self.number
    }

    /// Begins an operation on the loop, and awaits its result.
    /// - Parameters:
    ///   - cancelled: result if the Swift task is cancelled before the operation begins; `nil` begins it and withdraws it
    ///     at once.
    ///   - begin: returns the operation's number; `nil` if there is nothing to withdraw.
    ///   - withdraw: completes the operation immediately if it can still be withdrawn; called when the Swift task is
    ///     cancelled.
    package static func perform<Answer: Sendable>(
        on loop: Loop, cancelled: Answer? = nil,
        _ begin: @escaping @Sendable (@escaping @Sendable (Answer) -> Void) -> UInt64?,
        withdraw: @escaping @Sendable (UInt64) -> Void
    ) async -> Answer {
        let waiting = LoopIsolated(AwaitedOperation(), on: loop)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                waiting.execute { operation in
                    if operation.isCancelled, let cancelled { return continuation.resume(returning: cancelled) }
                    guard let number = begin({ continuation.resume(returning: $0) }) else { return }
                    if operation.isCancelled { withdraw(number) } else { operation.number = number }
                }
            }
        } onCancel: {
            waiting.execute { operation in
                if let number = operation.cancel() { withdraw(number) }
            }
        }
    }

    /// The same for a task's operation, which fails with `.cancelled` if it is cancelled before it begins.
    static func result<Value: Sendable>(
        on loop: Loop,
        _ begin: @escaping @Sendable (@escaping @Sendable (Result<Value, TaskFailure>) -> Void) -> UInt64,
        withdraw: @escaping @Sendable (UInt64) -> Void
    ) async throws(TaskFailure) -> Value {
        let result = await self.perform(on: loop, cancelled: .failure(.cancelled), begin, withdraw: withdraw)
        return try result.get()
    }
}
