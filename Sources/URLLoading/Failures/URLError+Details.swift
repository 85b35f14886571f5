import Foundation

/// In the `userInfo` of an error: why the network may not be used.
public let NSURLErrorNetworkUnavailableReasonKey = "NSURLErrorNetworkUnavailableReasonKey"
/// The number of the error about a file outside of where the program may look. `URLError.Code` cannot hold it on Linux.
public let NSURLErrorFileOutsideSafeArea = -1104

extension URLError {
    /// Why the system cancelled a task of a background session.
    public enum BackgroundTaskCancelledReason: Int, Sendable {
        case userForceQuitApplication = 0
        case backgroundUpdatesDisabled = 1
        case insufficientSystemResources = 2
    }

    /// Why the network may not be used.
    public enum NetworkUnavailableReason: Int, Sendable {
        case cellular = 0
        case expensive = 1
        case constrained = 2
    }

    public var backgroundTaskCancelledReason: BackgroundTaskCancelledReason? {
        (self.userInfo[NSURLErrorBackgroundTaskCancelledReasonKey] as? Int).flatMap(BackgroundTaskCancelledReason.init)
    }

    public var networkUnavailableReason: NetworkUnavailableReason? {
        (self.userInfo[NSURLErrorNetworkUnavailableReasonKey] as? Int).flatMap(NetworkUnavailableReason.init)
    }

    /// What goes on with the download that failed.
    public var downloadTaskResumeData: Data? { self.userInfo[NSURLSessionDownloadTaskResumeData] as? Data }

    /// What goes on with the upload that failed.
    public var uploadTaskResumeData: Data? { self.userInfo[NSURLSessionUploadTaskResumeData] as? Data }

    /// What the server showed that was not trusted.
    public var failureURLPeerTrust: SecTrust? { self.userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? ServerTrust }
}
