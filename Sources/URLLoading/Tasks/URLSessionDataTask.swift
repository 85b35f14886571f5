import Foundation

/// Loads what a URL stands for into memory, or message by message to a delegate.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {
    var loader: TaskLoader? { self.driver as? TaskLoader }
}

/// Loads what a URL stands for into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {
    var loader: TaskLoader? { self.driver as? TaskLoader }

    /// Cancels the task, and keeps what has come so that another can go on with it.
    /// - Parameter completionHandler: on the delegate queue, before the end of the task is told; gets `nil` where that
    ///   is not possible: the request is no GET over HTTP, the server named no entity tag and no date of change, or it
    ///   takes no ranges.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        guard self.beginCancelling(), let transfer = self.loader else {
            if let line = self.session?.core.delegateQueue {
                line.add { completionHandler(nil) }
            } else {
                completionHandler(nil)
            }
            return
        }
        transfer.cancelled(producingResumeData: completionHandler)
    }

    /// As `cancel(byProducingResumeData:)`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            self.cancel { continuation.resume(returning: $0) }
        }
    }
}

/// Sends a body: data, a file or a stream. What comes back is told as to a data task.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    /// Cancels the task.
    /// - Parameter completionHandler: gets `nil` on the delegate queue: uploads that can be resumed are still to come.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        self.cancel()
        if let line = self.session?.core.delegateQueue { line.add { completionHandler(nil) } } else { completionHandler(nil) }
    }

    /// As `cancel(byProducingResumeData:)`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            self.cancel { continuation.resume(returning: $0) }
        }
    }
}
