/// Where a task is in its life; the order of the URL loading system's `URLSessionTask.State`.
public enum TaskState: UInt8, Sendable, Hashable {
    /// Made, or suspended: nothing is read, nothing is begun, no timer runs.
    case suspended
    case running
    /// Asked to end; what waits is being answered.
    case canceling
    /// Over. `error` says how, if not well.
    case completed
}
