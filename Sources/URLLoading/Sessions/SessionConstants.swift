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
