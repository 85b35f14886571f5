import Foundation
import Synchronization

/// Uploads that another task continues.
extension TaskLoader {
    /// From any thread. Cancels the task; `handler` gets its resume data on the delegate queue.
    func cancelled(producingUploadData handler: @escaping @Sendable (Data?) -> Void) {
        self.core.executor.execute {
            self.failKeepingUpload(LoadFailure.error(.cancelled, url: self.task.currentRequest?.url)) { data in
                self.core.delegateQueue.add(of: self.task) { handler(data) }
            }
        }
    }

    /// Fails the task with an error that carries the resume data, if the upload can be continued.
    /// - Parameter produced: gets the resume data before the delegate is notified of the end.
    func failKeepingUpload(_ error: URLError, _ produced: @escaping @Sendable (Data?) -> Void) {
        guard !self.transfer.hasEnded else { return produced(nil) }
        guard let resumeData = self.uploadResumeData else {
            produced(nil)
            return self.end(error)
        }
        guard self.stop() else { return }
        let end: @Sendable (Data?) -> Void = { data in
            produced(data)
            self.notifyEnd(data.map { error.withUploadData($0) } ?? error)
        }
        guard resumeData.isLarge else { return end(resumeData.encoded()) }
        DiskQueue.shared.async {
            let data = resumeData.encoded()
            self.core.executor.execute { end(data) }
        }
    }

    /// From any thread. The task continues.
    func getResumeData(_ handler: @escaping @Sendable (Data?) -> Void) {
        self.core.executor.execute { handler(self.uploadResumeData?.encoded()) }
    }

    /// That of a task which was never resumed is what it was made from.
    private var uploadResumeData: UploadResumeData? {
        guard let load = self.currentLoad as? HTTPLoad else {
            return self.transfer.isActive ? nil : self.uploadResumption?.data
        }
        guard let original = self.task.metadata.withLock({ $0.originalRequest }) else { return nil }
        return load.upload?.resumeData(originalRequest: original)
    }

    /// - Parameter answer: gets an unopened stream of the body from `offset` on; `nil` if no delegate has one.
    func askBodyStream(from offset: Int64, _ answer: @escaping @Sendable (UncheckedTransfer<InputStream?>) -> Void) {
        let (task, session) = (self.task, self.session)
        let request = DelegateRequest<UncheckedTransfer<InputStream?>>(
            method: .bodyStreamFromOffset, asyncMethod: .bodyStreamFromOffsetAsync,
            call: { delegate, handler in
                delegate.task?.urlSession(session, task: task, needNewBodyStreamFrom: offset) { stream in
                    handler(UncheckedTransfer(stream))
                }
            },
            callAsync: {
                UncheckedTransfer(await $0.task?.urlSession(session, needNewBodyStreamForTask: task, from: offset))
            })
        self.core.delegateQueue.ask(self.delegates, about: self.task, request) { answer($0 ?? UncheckedTransfer(nil)) }
    }
}

extension TaskBody {
    /// The whole body of an upload that is continued.
    init(_ body: UploadResumeData.Body) {
        switch body {
        case .data(let data): self = .data(data)
        case .file(let url, _): self = .file(url)
        case .stream: self = .stream(first: nil)
        }
    }
}

extension URLError {
    fileprivate func withUploadData(_ resumeData: Data) -> URLError {
        var details = self.userInfo
        details[NSURLSessionUploadTaskResumeData] = resumeData
        return URLError(self.code, userInfo: details)
    }
}
