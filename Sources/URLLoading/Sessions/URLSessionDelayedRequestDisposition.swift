/// What becomes of a load that was to begin later.
public enum URLSessionDelayedRequestDisposition: Int, Sendable {
    case continueLoading = 0
    case useNewRequest = 1
    /// It fails with `URLError.cancelled`.
    case cancel = 2
}
