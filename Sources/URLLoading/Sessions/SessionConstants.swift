import Foundation

/// Values for `URLSessionTask.priority`, which is a hint from 0 to 1.
public let NSURLSessionTaskPriorityDefault: Float = 0.5
public let NSURLSessionTaskPriorityLow: Float = 0.25
public let NSURLSessionTaskPriorityHigh: Float = 0.75

/// An unknown number of bytes: -1.
public let NSURLSessionTransferSizeUnknown: Int64 = -1

/// As `NSURLSessionDownloadTaskResumeData`, under its name in Foundation on Linux.
public let URLSessionDownloadTaskResumeData = NSURLSessionDownloadTaskResumeData
/// Key in the `userInfo` of a failed download's error: the resume data.
public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"
/// Key in the `userInfo` of a failed upload's error: the resume data.
public let NSURLSessionUploadTaskResumeData = "NSURLSessionUploadTaskResumeData"

/// The state of a task.
public enum URLSessionTaskState: Int, Sendable {
    case running = 0
    case suspended = 1
    /// Cancelled, but not completed yet.
    case canceling = 2
    case completed = 3
}

/// How to handle an authentication challenge.
public enum URLSessionAuthChallengeDisposition: Int, Sendable {
    /// Uses the credential; with `nil` the load continues without one.
    case useCredential = 0
    /// As without a delegate.
    case performDefaultHandling = 1
    /// Fails the load with `URLError.cancelled`.
    case cancelAuthenticationChallenge = 2
    /// Tries the next challenge of the same response.
    case rejectProtectionSpace = 3
}

/// How to handle a delayed request.
public enum URLSessionDelayedRequestDisposition: Int, Sendable {
    case continueLoading = 0
    case useNewRequest = 1
    /// Fails the load with `URLError.cancelled`.
    case cancel = 2
}

/// How a load continues after its response.
public enum URLSessionResponseDisposition: Int, Sendable {
    /// Fails the load with `URLError.cancelled`.
    case cancel = 0
    case allow = 1
    /// Writes the content to a file.
    case becomeDownload = 2
    /// Hands the connection to a stream task, which reads what follows the head as it is on the wire. The connection is used
    /// for no other request. The stream only reads if other requests were pipelined on the connection. Fails the task with
    /// `URLError.unsupportedURL` without an open HTTP/1.1 connection, as from the cache or over HTTP/2, and before the whole
    /// request was sent.
    case becomeStream = 3
}
