import SessionTasks
import StreamTransport

extension AwaitedOperation {
    /// Begins an operation on the loop, and waits for its answer.
    /// - Parameters:
    ///   - begin: gives the operation's number; `nil` if there is nothing to withdraw.
    ///   - withdraw: lets the operation answer at once, if it can still be taken back; called when the Swift task is
    ///     cancelled.
    static func perform<Answer: Sendable>(
        on loop: Loop, _ begin: @escaping @Sendable (@escaping @Sendable (Answer) -> Void) -> UInt64?,
        withdraw: @escaping @Sendable (UInt64) -> Void
    ) async -> Answer {
        let operation = AwaitedOperation()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                loop.execute {
                    let number = begin { continuation.resume(returning: $0) }
                    guard let number else { return }
                    // Cancelled before it began: it is taken back as if just after.
                    if operation.mayBegin() { operation.began(number) } else { withdraw(number) }
                }
            }
        } onCancel: {
            loop.execute {
                guard let number = operation.cancel() else { return }
                withdraw(number)
            }
        }
    }
}
