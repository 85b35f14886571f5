import Foundation
import HTTPTransport
import Synchronization

extension URLSession {
    func dataTask(
        _ request: URLRequest, result: TransferResult, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDataTask {
        let task = URLSessionDataTask(self.facts(request), of: self)
        self.begin(task, body: TaskBody(request), result: result, delegate)
        return task
    }

    func uploadTask(
        _ request: URLRequest, body: TaskBody, result: TransferResult, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionUploadTask {
        let task = URLSessionUploadTask(self.facts(request), of: self)
        self.begin(task, body: body, result: result, delegate)
        return task
    }

    func downloadTask(
        _ request: URLRequest, result: TransferResult, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDownloadTask {
        let task = URLSessionDownloadTask(self.facts(request), of: self)
        self.begin(task, body: TaskBody(request), result: result, delegate)
        return task
    }

    func downloadTask(
        resuming data: Data, result: TransferResult, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionDownloadTask {
        let resumption = DownloadResumption(data)
        let task = URLSessionDownloadTask(self.facts(resumption?.originalRequest), of: self)
        let transfer = self.begin(task, body: .none, result: result, delegate)
        if let resumption {
            transfer.resumption = resumption
        } else {
            transfer.flaw = LoadFailure.error(
                .unsupportedURL, url: nil, text: "The resume data cannot be read, or its file is gone.")
        }
        return task
    }

    func unsupportedUpload(
        _ result: TransferResult, delegate: (any URLSessionTaskDelegate)? = nil
    ) -> URLSessionUploadTask {
        let task = URLSessionUploadTask(self.facts(nil), of: self)
        self.begin(task, body: .none, result: result, delegate).flaw = LoadFailure.error(
            .unsupportedURL, url: nil, text: "Uploads cannot be resumed yet: send the whole body again.")
        return task
    }

    func facts(_ request: URLRequest?) -> TaskFacts {
        TaskFacts(identifier: self.core.nextIdentifier(), request: request)
    }

    @discardableResult
    private func begin(
        _ task: URLSessionTask, body: TaskBody, result: TransferResult, _ delegate: (any URLSessionTaskDelegate)?
    ) -> Transfer {
        let face = delegate.map { DelegateFace($0) }
        task.facts.withLock { facts in
            facts.expectedToSend = body.length(for: facts.originalRequest)
            facts.delegate = face
            facts.prefersIncrementalDelivery = result.isDelegate && !(task is URLSessionDownloadTask)
        }
        let transfer = Transfer(task, of: self, body: body, result: result)
        task.use(transfer)
        self.admit(task) { error in
            RefusedTask(task, error) { task, error in
                let transfer = Transfer(task, of: self, body: .none, result: result)
                task.use(transfer)
                transfer.core.pool.execute { transfer.failed(error) }
            }
        }
        return transfer
    }

    /// Registers a task, and tells the delegate of it.
    /// - Parameter refused: makes what drives the task where the session is invalid.
    func admit(_ task: URLSessionTask, refused: (URLError) -> RefusedTask) {
        if !self.core.register(task) {
            task.use(
                refused(
                    LoadFailure.error(
                        .cancelled, url: task.originalRequest?.url, text: "The session is invalid: make another one.")))
        }
        for face in self.core.faces(for: task) where face.mayAnswer(.createdTask) {
            if face.tell(.createdTask, { face.task?.urlSession(self, didCreateTask: task) }) { return }
        }
    }
}
