/// Where a task is in its life.
public enum URLSessionTaskState: Int, Sendable {
    case running = 0
    case suspended = 1
    /// Told to end, and not ended yet.
    case canceling = 2
    case completed = 3
}
