import Foundation

/// All tasks are made suspended: nothing happens before `resume()`. One that is made by a session which is invalid
/// fails with `URLError.cancelled` once it is resumed.
extension URLSession {
    /// Loads the request; its body is what the request has.
    open func dataTask(with request: URLRequest) -> URLSessionDataTask {
        self.dataTask(request, result: .delegate)
    }

    /// Loads the URL by GET.
    open func dataTask(with url: URL) -> URLSessionDataTask {
        self.dataTask(URLRequest(url: url), result: .delegate)
    }

    /// - Parameter completionHandler: on the delegate queue; a response of 404 is a success. The delegate hears nothing
    ///   of the response and the content.
    open func dataTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.dataTask(request, result: .data(completionHandler))
    }

    open func dataTask(
        with url: URL, completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDataTask {
        self.dataTask(URLRequest(url: url), result: .data(completionHandler))
    }

    /// Sends the file; what body the request has counts for nothing. A file that is not there fails the task with
    /// `URLError.fileDoesNotExist`.
    open func uploadTask(with request: URLRequest, fromFile fileURL: URL) -> URLSessionUploadTask {
        self.uploadTask(request, body: .file(fileURL), result: .delegate)
    }

    open func uploadTask(with request: URLRequest, from bodyData: Data) -> URLSessionUploadTask {
        self.uploadTask(request, body: .data(bodyData), result: .delegate)
    }

    /// Sends what the delegate gives when it is asked for a stream: in chunks, unless the request names a
    /// Content-Length. Without such a delegate the request's own stream is sent.
    open func uploadTask(withStreamedRequest request: URLRequest) -> URLSessionUploadTask {
        self.uploadTask(request, body: .stream(first: nil), result: .delegate)
    }

    open func uploadTask(
        with request: URLRequest, fromFile fileURL: URL,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.uploadTask(request, body: .file(fileURL), result: .data(completionHandler))
    }

    /// - Parameter bodyData: `nil` is an empty body.
    open func uploadTask(
        with request: URLRequest, from bodyData: Data?,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.uploadTask(request, body: .data(bodyData ?? Data()), result: .data(completionHandler))
    }

    /// Uploads that can be resumed are still to come: the task fails with `URLError.unsupportedURL`.
    open func uploadTask(withResumeData resumeData: Data) -> URLSessionUploadTask {
        self.unsupportedUpload(.delegate)
    }

    open func uploadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (Data?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionUploadTask {
        self.unsupportedUpload(.data(completionHandler))
    }

    /// Loads the request into a file.
    open func downloadTask(with request: URLRequest) -> URLSessionDownloadTask {
        self.downloadTask(request, result: .delegate)
    }

    open func downloadTask(with url: URL) -> URLSessionDownloadTask {
        self.downloadTask(URLRequest(url: url), result: .delegate)
    }

    /// Goes on with a download by what `cancel(byProducingResumeData:)` or a failure gave. What cannot be read fails
    /// the task with `URLError.unsupportedURL`; where the server does not go on, the download begins again.
    open func downloadTask(withResumeData resumeData: Data) -> URLSessionDownloadTask {
        self.downloadTask(resuming: resumeData, result: .delegate)
    }

    /// - Parameter completionHandler: on the delegate queue; the file is taken away when it returns.
    open func downloadTask(
        with request: URLRequest, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(request, result: .file(completionHandler))
    }

    open func downloadTask(
        with url: URL, completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(URLRequest(url: url), result: .file(completionHandler))
    }

    open func downloadTask(
        withResumeData resumeData: Data,
        completionHandler: @escaping @Sendable (URL?, URLResponse?, (any Error)?) -> Void
    ) -> URLSessionDownloadTask {
        self.downloadTask(resuming: resumeData, result: .file(completionHandler))
    }
}
