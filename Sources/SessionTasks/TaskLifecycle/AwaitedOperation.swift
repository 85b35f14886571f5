/// Joins an awaiting Swift task with the operation it waits for. Touched only on the loop, so cancellation either comes
/// before the operation began, finds its number, or comes too late: never in between.
final class AwaitedOperation: @unchecked Sendable {
    private var cancelled = false
    private var number: UInt64?

    func mayBegin() -> Bool {
        !self.cancelled
    }

    func began(_ number: UInt64) {
        self.number = number
    }

    /// - Returns: the number of the operation to withdraw, if it has begun.
    func cancel() -> UInt64? {
        self.cancelled = true
        return self.number
    }
}
