import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

/// The file of a download while it comes: takes content, asks for more as the disk takes it, and tells how it grows.
///
/// On the loop, but for what is told from the delegate queue.
final class DownloadSink: @unchecked Sendable {
    private struct Progress {
        /// Written since the delegate was told, and in all.
        var news: Int64 = 0
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
    private var owed = 0
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

    func begin(for transfer: Transfer) {
        self.file.observe { [weak transfer] notice in
            guard let transfer else { return }
            transfer.core.pool.execute { self.noticed(notice, transfer) }
        }
        transfer.loader?.pull(DeliveryWindow.limit)
    }

    private func noticed(_ notice: DownloadFile.Notice, _ transfer: Transfer) {
        switch notice {
        case .hasRoom:
            self.isFull = false
            let owed = self.owed
            self.owed = 0
            if owed > 0 { transfer.loader?.pull(owed) }
        case .failed(let failure):
            transfer.failed(
                LoadFailure.error(
                    failure.code, url: transfer.task.currentRequest?.url, cause: failure.underlying ?? failure,
                    text: failure.description))
        }
    }

    func append(_ bytes: RawSpan, for transfer: Transfer) {
        let count = bytes.byteCount
        self.isFull = !self.file.append(bytes)
        if self.isFull { self.owed += count } else { transfer.loader?.pull(count) }
        let tells = self.progress.withLock { progress in
            progress.news += Int64(count)
            progress.total += Int64(count)
            defer { progress.isScheduled = true }
            return !progress.isScheduled
        }
        if tells { self.tellProgress(transfer) }
    }

    private func tellProgress(_ transfer: Transfer) {
        let session = transfer.session
        transfer.core.line.tell(transfer.contentFaces, .wroteData) { face in
            guard let task = transfer.task as? URLSessionDownloadTask else { return }
            let (news, total) = self.progress.withLock { progress in
                defer { (progress.news, progress.isScheduled) = (0, false) }
                return (progress.news, progress.total)
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
