/// Joins an awaiting Swift task with the operation it waits for. Isolated to the loop, so cancellation either comes before
/// the operation began, finds its number, or comes too late: never in between.
package final class AwaitedOperation {
    private var cancelled = false
    private var number: UInt64?

    package init() {}

    package func mayBegin() -> Bool {
        !self.cancelled
    }

    package func began(_ number: UInt64) {
        self.number = number
    }

    /// - Returns: the number of the operation to withdraw, if it has begun.
    package func cancel() -> UInt64? {
        self.cancelled = true
        return self.number
    }
}
