import Foundation

/// Loads a URL into memory, or delivers its content to a delegate piece by piece.
open class URLSessionDataTask: URLSessionTask, @unchecked Sendable {  // Not final; thread-safe.
    var loader: TaskLoader? { self.driver as? TaskLoader }
}

/// Loads a URL into a file.
open class URLSessionDownloadTask: URLSessionTask, @unchecked Sendable {  // Not final; thread-safe.
    /// Cancels the task and keeps the content received so far, so that another task can resume the download.
    /// - Parameter completionHandler: called on the delegate queue before the task's completion; gets `nil` if the
    ///   download cannot be resumed: the request is not an HTTP GET, or the response has neither an entity tag nor a
    ///   Last-Modified date, or the server accepts no ranges.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        guard self.beginCancelling() else { return self.onDelegateQueue { completionHandler(nil) } }
        switch self.driver {
        case let loader as TaskLoader: loader.cancelled(producingResumeData: completionHandler)
        case let transfer as BackgroundTask: transfer.cancelled(producingResumeData: completionHandler)
        case let driver:
            driver?.cancelled()
            self.onDelegateQueue { completionHandler(nil) }
        }
    }

    /// As `cancel(byProducingResumeData:)`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            self.cancel { continuation.resume(returning: $0) }
        }
    }
}

/// Sends a body from data, a file or a stream. The response is delivered as for a data task.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {  // Not final; thread-safe.
    /// Cancels the task, so that another task can continue the upload.
    /// - Parameter completionHandler: called on the delegate queue before the task's completion; gets `nil` if the upload
    ///   cannot be continued: the server has not announced (104) that it can, or has received everything, or the body is
    ///   data of more than 8 MiB.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        let cancels = self.beginCancelling()
        if cancels, let loader = self.loader { return loader.cancelled(producingUploadData: completionHandler) }
        if cancels { self.driver?.cancelled() }
        self.onDelegateQueue { completionHandler(nil) }
    }

    /// As `cancel(byProducingResumeData:)`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            self.cancel { continuation.resume(returning: $0) }
        }
    }

    /// Resume data for the upload, while the task continues.
    /// - Parameter handler: called on any thread; gets `nil` if the upload cannot be continued.
    package func getResumeData(_ handler: @escaping @Sendable (Data?) -> Void) {
        guard let loader = self.loader else { return handler(nil) }
        loader.getResumeData(handler)
    }
}
