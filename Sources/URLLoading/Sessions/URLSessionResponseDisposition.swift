/// What becomes of a load once its response is known.
public enum URLSessionResponseDisposition: Int, Sendable {
    /// It fails with `URLError.cancelled`.
    case cancel = 0
    case allow = 1
    /// The content goes to a file.
    case becomeDownload = 2
    /// The connection becomes a stream task's.
    case becomeStream = 3
}
