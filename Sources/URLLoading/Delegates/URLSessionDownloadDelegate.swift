import Foundation

/// Hears of the file of a download task.
public protocol URLSessionDownloadDelegate: URLSessionTaskDelegate {
    /// The file is whole. It is taken away when this returns: move it, or open it. What came with a 404 is a file too.
    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL)

    /// More was written; counts in bytes, once decoded; `totalBytesExpectedToWrite` -1 where it is not known.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64)

    /// A download goes on from resume data: once, before anything is written.
    /// - Parameters:
    ///   - fileOffset: bytes that are kept of the earlier attempt; 0 where they were of no use.
    ///   - expectedTotalBytes: of the whole; -1 where it is not known.
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64)
}

extension URLSessionDownloadDelegate {
    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        LeftOut.call()
    }

    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        LeftOut.call()
    }
}
