import Foundation

/// Sends a body: data, a file or a stream. What comes back is told as to a data task.
open class URLSessionUploadTask: URLSessionDataTask, @unchecked Sendable {
    /// Cancels the task.
    /// - Parameter completionHandler: gets `nil` on the delegate queue: uploads that can be resumed are still to come.
    open func cancel(byProducingResumeData completionHandler: @escaping @Sendable (Data?) -> Void) {
        self.cancel()
        if let line = self.session?.core.line { line.add { completionHandler(nil) } } else { completionHandler(nil) }
    }

    /// As `cancel(byProducingResumeData:)`.
    open func cancelByProducingResumeData() async -> Data? {
        await withCheckedContinuation { continuation in
            self.cancel { continuation.resume(returning: $0) }
        }
    }
}
