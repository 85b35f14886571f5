import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes

extension Transfer {
    /// The content of `response` goes to a file of its own.
    func beginFile(_ response: URLResponse) {
        do throws(DownloadFileFailure) {
            let file = try DownloadFile()
            if self.resumption != nil { self.tellResumed(at: 0, expected: response.expectedContentLength) }
            self.use(
                DownloadSink(
                    file, offset: 0, expected: response.expectedContentLength,
                    validator: self.validator(response)))
        } catch {
            self.failed(
                LoadFailure.error(
                    error.code, url: response.url, cause: error.underlying ?? error, text: error.description))
        }
    }

    /// The content of `response` follows what a former attempt left.
    /// - Returns: `false` where that is not there any more: the load begins again.
    func resumeFile(_ response: HTTPURLResponse, total: Int64?) -> Bool {
        guard let resumption = self.resumption, let file = resumption.file() else { return false }
        let offset = resumption.resumption.offset
        let expected = total ?? (response.expectedContentLength < 0 ? -1 : offset + response.expectedContentLength)
        self.task.change(\.response) { facts in
            facts.response = response
            facts.expectedToReceive = response.expectedContentLength
        }
        self.showProgress()
        self.tellResumed(at: offset, expected: expected)
        self.use(
            DownloadSink(file, offset: offset, expected: expected, validator: resumption.resumption.validator))
        return true
    }

    private func use(_ sink: DownloadSink) {
        self.sink = .file(sink)
        sink.begin(for: self)
    }

    private func tellResumed(at offset: Int64, expected: Int64) {
        guard let task = self.task as? URLSessionDownloadTask else { return }
        let session = self.session
        self.core.line.tell(self.contentFaces, .resumedAtOffset) { face in
            face.download?.urlSession(
                session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected)
        }
    }

    private func validator(_ response: URLResponse) -> ResumeValidator? {
        guard let response = response as? HTTPURLResponse,
            let method = HTTPRequest.Method(self.task.currentRequest?.httpMethod ?? "GET"),
            Resumption.isPossible(
                method: method, status: response.statusCode, fields: response.httpFields, now: HTTPDate(Date()))
        else { return nil }
        return ResumeValidator(response.httpFields, now: HTTPDate(Date()))
    }

    // MARK: Breaking off

    /// From any thread: ends the task, and gives what another can go on with.
    func cancelled(producingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        self.core.pool.execute {
            self.breakOff(LoadFailure.error(.cancelled, url: self.task.currentRequest?.url)) { data in
                self.core.line.add { handler(data) }
            }
        }
    }

    /// Ends with an error that carries what another attempt can go on with.
    /// - Parameter told: gets it before the end is told.
    func breakOff(_ error: URLError, _ told: @escaping @Sendable (Data?) -> Void) {
        guard self.stage != .ended else { return told(nil) }
        guard case .file(let sink) = self.sink, sink.isResumable else {
            told(nil)
            return self.end(error)
        }
        self.stop()
        sink.resumeData(for: self.task) { data in
            self.core.pool.execute {
                told(data)
                self.tellEnd(data.map { error.carrying($0) } ?? error)
            }
        }
    }
}

extension URLError {
    /// The error with what the download can go on from.
    func carrying(_ resumeData: Data) -> URLError {
        var details = self.userInfo
        details[NSURLSessionDownloadTaskResumeData] = resumeData
        return URLError(self.code, userInfo: details)
    }
}
