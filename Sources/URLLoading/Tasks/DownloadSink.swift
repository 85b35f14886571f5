import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

/// Writes the content of a download to its file: pulls more as the disk takes it, and notifies the delegate of
/// progress.
///
/// Used on the session's executor, except for delegate calls.
final class DownloadSink: Sendable {
    private struct State {
        /// Bytes written since the last delegate call.
        var unreported: Int64 = 0
        var total: Int64
        var isScheduled = false
        /// Bytes to pull once the file's write queue has space.
        var pendingCredit = 0
        var isKept = false
    }

    private let file: DownloadFile
    /// Size of the whole file; -1 if unknown.
    private let expected: Int64
    /// Makes the download resumable; `nil` if it is not.
    private let validator: ResumeValidator?
    private let state: Mutex<State>

    /// - Parameters:
    ///   - offset: bytes that are in the file already.
    ///   - expected: size of the whole file.
    fileprivate init(_ file: DownloadFile, offset: Int64, expected: Int64, validator: ResumeValidator?) {
        self.file = file
        self.expected = expected
        self.validator = validator
        self.state = Mutex(State(total: offset))
    }

    var url: URL { self.file.url }

    fileprivate func start(for loader: TaskLoader) {
        self.file.observe { [weak loader] notice in
            guard let loader else { return }
            loader.core.executor.execute { self.handle(notice, loader) }
        }
        loader.pull(DeliveryWindow.limit)
    }

    private func handle(_ notice: DownloadFile.Notice, _ loader: TaskLoader) {
        switch notice {
        case .hasCapacity:
            let credit = self.state.withLock { state in
                defer { state.pendingCredit = 0 }
                return state.pendingCredit
            }
            if credit > 0 { loader.pull(credit) }
        case .failed(let failure): loader.failed(LoadFailure.error(failure, url: loader.task.latestRequest?.url))
        }
    }

    func append(_ bytes: RawSpan, for loader: TaskLoader) {
        let count = bytes.byteCount
        let takesMore = self.file.append(bytes)
        let needsScheduling = self.state.withLock { state in
            if !takesMore { state.pendingCredit += count }
            state.unreported += Int64(count)
            state.total += Int64(count)
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
        if takesMore { loader.pull(count) }
        if needsScheduling { self.notifyProgress(loader) }
    }

    private func notifyProgress(_ loader: TaskLoader) {
        loader.core.delegateQueue.notify(loader.contentDelegates, of: loader.task, .wroteData) { delegate in
            guard let task = loader.task as? URLSessionDownloadTask else { return }
            let (written, total) = self.state.withLock { state in
                defer { (state.unreported, state.isScheduled) = (0, false) }
                return (state.unreported, state.total)
            }
            guard written > 0 else { return }
            delegate.download?.urlSession(
                loader.session, downloadTask: task, didWriteData: written, totalBytesWritten: total,
                totalBytesExpectedToWrite: self.expected)
        }
    }

    // MARK: Ending

    func finish(_ completion: @escaping @Sendable (DownloadFileFailure?) -> Void) {
        self.file.finish { result in
            if case .failure(let failure) = result { completion(failure) } else { completion(nil) }
        }
    }

    fileprivate var isResumable: Bool { self.validator != nil && self.file.name != nil }

    /// Finishes writing and keeps the file.
    /// - Parameter completion: gets the resume data; `nil` if the download cannot be resumed.
    fileprivate func resumeData(for task: URLSessionTask, _ completion: @escaping @Sendable (Data?) -> Void) {
        guard let validator = self.validator, let name = self.file.name else { return completion(nil) }
        self.file.finish { result in
            guard case .success(let length) = result, length > 0, let original = task.originalRequest,
                let current = task.latestRequest
            else { return completion(nil) }
            let data = ResumeData(
                originalRequest: original, currentRequest: current, validator: validator, bytesReceived: length,
                total: self.expected >= length ? self.expected : nil, file: name)
            let encoded = data.encoded()
            if encoded != nil { self.keep() }
            completion(encoded)
        }
    }

    /// The range of a file of known size that the server has not sent; `nil` if nothing is missing.
    fileprivate var missingRange: RangeResumption? {
        let received = self.state.withLock(\.total)
        guard received < self.expected, let validator = self.validator else { return nil }
        return RangeResumption(offset: received, validator: validator)
    }

    func keep() { self.state.withLock { $0.isKept = true } }

    /// Deletes the file, unless it was moved or is to be kept.
    func discard() {
        if !self.state.withLock({ $0.isKept }) { self.file.discard() }
    }
}

/// Decoded resume data.
struct DownloadResumption {
    private let data: ResumeData
    let range: RangeResumption

    /// - Returns: `nil` for data that cannot be decoded.
    init?(_ data: Data) {
        guard let data = ResumeData(data),
            let range = RangeResumption(offset: data.bytesReceived, validator: data.validator)
        else { return nil }
        self.data = data
        self.range = range
    }

    /// Resume data for another program.
    var resumeData: ResumeData { self.data }

    var originalRequest: URLRequest { self.data.originalRequest }
    var currentRequest: URLRequest { self.data.currentRequest }

    /// Whether the file of the earlier attempt is still there.
    fileprivate var isUsable: Bool { self.file() != nil }

    /// The file of the earlier attempt; `nil` if it is gone or was changed.
    fileprivate func file() -> DownloadFile? {
        try? DownloadFile(resuming: self.data.file, at: self.range.offset)
    }
}

extension TaskLoader {
    /// Writes the content of `response` to a new file.
    func startFile(_ response: URLResponse) {
        do throws(DownloadFileFailure) {
            let file = try DownloadFile()
            if let resumption = self.resumption {
                resumption.file()?.discard()
                self.notifyResumed(at: 0, expected: response.expectedContentLength)
            }
            self.start(
                DownloadSink(
                    file, offset: 0, expected: response.expectedContentLength, validator: self.validator(response)))
        } catch {
            self.failed(LoadFailure.error(error, url: response.url))
        }
    }

    /// Appends the content of `response` to the file of the earlier attempt.
    /// - Returns: `false` if that file cannot be used and the download must start over.
    func resumeFile(_ response: HTTPURLResponse, total: Int64?) -> Bool {
        guard let resumption = self.resumption, let file = resumption.file() else { return false }
        let offset = resumption.range.offset
        let end = offset.addingReportingOverflow(response.expectedContentLength)
        let expected = total ?? (response.expectedContentLength < 0 || end.overflow ? -1 : end.partialValue)
        self.task.mutate(\.response) { metadata in
            metadata.response = response
            metadata.expectedToReceive = response.expectedContentLength
        }
        self.updateProgress()
        self.notifyResumed(at: offset, expected: expected)
        self.start(DownloadSink(file, offset: offset, expected: expected, validator: resumption.range.validator))
        return true
    }

    /// The range that the file lacks after the end of a response.
    var missingRange: RangeResumption? {
        if case .file(let sink) = self.sink { sink.missingRange } else { nil }
    }

    private func start(_ sink: DownloadSink) {
        self.sink = .file(sink)
        sink.start(for: self)
    }

    private func notifyResumed(at offset: Int64, expected: Int64) {
        guard let task = self.task as? URLSessionDownloadTask else { return }
        let session = self.session
        self.core.delegateQueue.notify(self.contentDelegates, of: task, .resumedAtOffset) { delegate in
            delegate.download?.urlSession(
                session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected)
        }
    }

    private func validator(_ response: URLResponse) -> ResumeValidator? {
        // Offsets of the file are not those of the resource if the program asked for a part of it.
        guard let response = response as? HTTPURLResponse,
            self.resumption != nil || self.task.latestRequest?.value(forHTTPHeaderField: "Range") == nil,
            let method = HTTPRequest.Method(self.task.latestRequest?.httpMethod ?? "GET"),
            RangeResumption.isPossible(
                method: method, status: response.statusCode, fields: response.httpFields, now: HTTPDate(Date()))
        else { return nil }
        return ResumeValidator(response.httpFields, now: HTTPDate(Date()))
    }

    /// From any thread. Cancels the task; `handler` gets its resume data on the delegate queue.
    func cancelled(producingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        self.core.executor.execute {
            self.failKeepingResumeData(LoadFailure.error(.cancelled, url: self.task.latestRequest?.url)) { data in
                self.core.delegateQueue.add(of: self.task) { handler(data) }
            }
        }
    }

    /// Fails the task with an error that carries the resume data, if there is any.
    /// - Parameter produced: gets the resume data before the delegate is notified of the end.
    func failKeepingResumeData(_ error: URLError, _ produced: @escaping @Sendable (Data?) -> Void) {
        guard !self.transfer.hasEnded else { return produced(nil) }
        guard case .file(let sink) = self.sink else { return self.failKeepingEarlierData(error, produced) }
        guard sink.isResumable else {
            produced(nil)
            return self.end(error)
        }
        guard self.stop() else { return }
        sink.resumeData(for: self.task) { data in
            self.core.executor.execute {
                produced(data)
                self.notifyEnd(data.map { error.withResumeData($0) } ?? error)
            }
        }
    }

    /// Before the response, a resumed download can be resumed with the data that it was made from.
    private func failKeepingEarlierData(_ error: URLError, _ produced: @escaping @Sendable (Data?) -> Void) {
        guard self.stop() else { return produced(nil) }
        let data = self.resumption?.isUsable == true ? self.resumption?.resumeData.encoded() : nil
        produced(data)
        self.notifyEnd(data.map { error.withResumeData($0) } ?? error)
    }
}

extension URLError {
    fileprivate func withResumeData(_ resumeData: Data) -> URLError {
        var details = self.userInfo
        details[NSURLSessionDownloadTaskResumeData] = resumeData
        return URLError(self.code, userInfo: details)
    }
}
