import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

extension TaskLoader {
    /// The content of `response` goes to a file of its own.
    func startFile(_ response: URLResponse) {
        do throws(DownloadFileFailure) {
            let file = try DownloadFile()
            if self.resumption != nil { self.notifyResumed(at: 0, expected: response.expectedContentLength) }
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
        self.task.mutate(\.response) { facts in
            facts.response = response
            facts.expectedToReceive = response.expectedContentLength
        }
        self.updateProgress()
        self.notifyResumed(at: offset, expected: expected)
        self.use(
            DownloadSink(file, offset: offset, expected: expected, validator: resumption.resumption.validator))
        return true
    }

    private func use(_ sink: DownloadSink) {
        self.sink = .file(sink)
        sink.begin(for: self)
    }

    private func notifyResumed(at offset: Int64, expected: Int64) {
        guard let task = self.task as? URLSessionDownloadTask else { return }
        let session = self.session
        self.core.delegateQueue.notify(self.contentDelegates, .resumedAtOffset) { face in
            face.download?.urlSession(
                session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected)
        }
    }

    private func validator(_ response: URLResponse) -> ResumeValidator? {
        guard let response = response as? HTTPURLResponse,
            let method = HTTPRequest.Method(self.task.currentRequest?.httpMethod ?? "GET"),
            RangeResumption.isPossible(
                method: method, status: response.statusCode, fields: response.httpFields, now: HTTPDate(Date()))
        else { return nil }
        return ResumeValidator(response.httpFields, now: HTTPDate(Date()))
    }

    // MARK: Breaking off

    /// From any thread: ends the task, and gives what another can go on with.
    func cancelled(producingResumeData handler: @escaping @Sendable (Data?) -> Void) {
        self.core.pool.execute {
            self.failKeepingResumeData(LoadFailure.error(.cancelled, url: self.task.currentRequest?.url)) { data in
                self.core.delegateQueue.add { handler(data) }
            }
        }
    }

    /// Ends with an error that carries what another attempt can go on with.
    /// - Parameter told: gets it before the end is told.
    func failKeepingResumeData(_ error: URLError, _ told: @escaping @Sendable (Data?) -> Void) {
        guard self.stage != .ended else { return told(nil) }
        guard case .file(let sink) = self.sink, sink.isResumable else {
            told(nil)
            return self.end(error)
        }
        self.stop()
        sink.resumeData(for: self.task) { data in
            self.core.pool.execute {
                told(data)
                self.notifyEnd(data.map { error.withResumeData($0) } ?? error)
            }
        }
    }
}

extension URLError {
    /// The error with what the download can go on from.
    func withResumeData(_ resumeData: Data) -> URLError {
        var details = self.userInfo
        details[NSURLSessionDownloadTaskResumeData] = resumeData
        return URLError(self.code, userInfo: details)
    }
}

/// The file of a download while it comes: takes content, asks for more as the disk takes it, and tells how it grows.
///
/// On the loop, but for what is told from the delegate queue.
final class DownloadSink: @unchecked Sendable {
    private struct Progress {
        /// Written since the delegate was told, and in all.
        var unreported: Int64 = 0
        var total: Int64
        var isScheduled = false
    }

    let file: DownloadFile
    /// Of the whole; -1 where it is not known.
    private let expected: Int64
    /// By what the download could go on; `nil` where it cannot.
    private let validator: ResumeValidator?
    private let progress: Mutex<Progress>
    /// Bytes that may be asked for once the disk has room.
    private var pendingCredit = 0
    private var isFull = false
    private var isKept = false

    /// - Parameters:
    ///   - offset: bytes that are in the file already.
    ///   - expected: of the whole.
    init(_ file: DownloadFile, offset: Int64, expected: Int64, validator: ResumeValidator?) {
        self.file = file
        self.expected = expected
        self.validator = validator
        self.progress = Mutex(Progress(total: offset))
    }

    var url: URL { self.file.url }

    func begin(for transfer: TaskLoader) {
        self.file.observe { [weak transfer] notice in
            guard let transfer else { return }
            transfer.core.pool.execute { self.handle(notice, transfer) }
        }
        transfer.currentLoad?.pull(DeliveryWindow.limit)
    }

    private func handle(_ notice: DownloadFile.Notice, _ transfer: TaskLoader) {
        switch notice {
        case .hasRoom:
            self.isFull = false
            let owed = self.pendingCredit
            self.pendingCredit = 0
            if owed > 0 { transfer.currentLoad?.pull(owed) }
        case .failed(let failure):
            transfer.failed(
                LoadFailure.error(
                    failure.code, url: transfer.task.currentRequest?.url, cause: failure.underlying ?? failure,
                    text: failure.description))
        }
    }

    func append(_ bytes: RawSpan, for transfer: TaskLoader) {
        let count = bytes.byteCount
        self.isFull = !self.file.append(bytes)
        if self.isFull { self.pendingCredit += count } else { transfer.currentLoad?.pull(count) }
        let tells = self.progress.withLock { progress in
            progress.unreported += Int64(count)
            progress.total += Int64(count)
            defer { progress.isScheduled = true }
            return !progress.isScheduled
        }
        if tells { self.notifyProgress(transfer) }
    }

    private func notifyProgress(_ transfer: TaskLoader) {
        let session = transfer.session
        transfer.core.delegateQueue.notify(transfer.contentDelegates, .wroteData) { face in
            guard let task = transfer.task as? URLSessionDownloadTask else { return }
            let (news, total) = self.progress.withLock { progress in
                defer { (progress.unreported, progress.isScheduled) = (0, false) }
                return (progress.unreported, progress.total)
            }
            guard news > 0 else { return }
            face.download?.urlSession(
                session, downloadTask: task, didWriteData: news, totalBytesWritten: total,
                totalBytesExpectedToWrite: self.expected)
        }
    }

    // MARK: Ending

    func finish(_ done: @escaping @Sendable (SinkFailure?) -> Void) {
        self.file.finish { result in
            switch result {
            case .success: done(nil)
            case .failure(let failure): done(SinkFailure(code: failure.code, cause: failure.underlying ?? failure))
            }
        }
    }

    /// Whether what has come is of use to a later attempt.
    var isResumable: Bool { self.validator != nil && self.file.name != nil }

    /// What a later attempt goes on from, once everything is written; the file is kept for it.
    func resumeData(for task: URLSessionTask, _ done: @escaping @Sendable (Data?) -> Void) {
        guard let validator = self.validator, let name = self.file.name else { return done(nil) }
        self.file.finish { result in
            guard case .success(let length) = result, length > 0, let original = task.originalRequest,
                let current = task.currentRequest
            else { return done(nil) }
            let data = ResumeData(
                originalRequest: original, currentRequest: current, validator: validator, bytesReceived: length,
                total: self.expected >= length ? self.expected : nil, file: name)
            let encoded = data.encoded()
            if encoded != nil { self.keep() }
            done(encoded)
        }
    }

    func keep() { self.isKept = true }

    /// Takes the file away, unless it is to stay or was moved.
    func discard() {
        if !self.isKept { self.file.discard() }
    }
}

/// A download that goes on: what the program gave, understood.
struct DownloadResumption {
    let data: ResumeData
    let resumption: RangeResumption

    /// - Returns: `nil` for data that cannot be read.
    init?(_ data: Data) {
        guard let data = ResumeData(data),
            let resumption = RangeResumption(offset: data.bytesReceived, validator: data.validator)
        else { return nil }
        self.data = data
        self.resumption = resumption
    }

    var originalRequest: URLRequest { self.data.originalRequest }
    var currentRequest: URLRequest { self.data.currentRequest }

    /// The file of the former attempt; `nil` where it is not what it was.
    func file() -> DownloadFile? {
        try? DownloadFile(resuming: self.data.file, at: self.resumption.offset)
    }
}

/// Why content could not be put where it belongs.
struct SinkFailure: Error {
    let code: URLError.Code
    let cause: any Error
}
