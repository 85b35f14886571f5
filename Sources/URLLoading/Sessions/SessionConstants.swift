import Foundation

/// How much a task wants to go before others: 0 to 1. A hint.
public let NSURLSessionTaskPriorityDefault: Float = 0.5
public let NSURLSessionTaskPriorityLow: Float = 0.25
public let NSURLSessionTaskPriorityHigh: Float = 0.75

/// A count of bytes that is not known: -1.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// As `NSURLSessionDownloadTaskResumeData`: the name that Foundation gives it on Linux.
public let URLSessionDownloadTaskResumeData = NSURLSessionDownloadTaskResumeData
/// In the `userInfo` of a failed download's error: what goes on with it.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"
/// In the `userInfo` of a failed upload's error: what goes on with it.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

/// Where a task is in its life.
public enum URLSessionTaskState: Int, Sendable {
    case running = 0
    case suspended = 1
    /// Told to end, and not ended yet.
    case canceling = 2
    case completed = 3
}

/// What becomes of a challenge.
public enum URLSessionAuthChallengeDisposition: Int, Sendable {
    /// With the credential; without one, the load goes on without.
    case useCredential = 0
    /// As if nobody had been asked.
    case performDefaultHandling = 1
    /// The load fails with `URLError.cancelled`.
    case cancelAuthenticationChallenge = 2
    /// The next challenge of the same answer is asked.
    case rejectProtectionSpace = 3
}

/// What becomes of a load that was to begin later.
public enum URLSessionDelayedRequestDisposition: Int, Sendable {
    case continueLoading = 0
    case useNewRequest = 1
    /// It fails with `URLError.cancelled`.
    case cancel = 2
}

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
