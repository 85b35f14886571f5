import Foundation
import Synchronization

extension Transfer {
    /// The last messages, in their order: metrics, then the end. On the loop, once.
    func tellEnd(_ error: (any Error)?) {
        let (task, session, core, result) = (self.task, self.session, self.core, self.result)
        let record = self.record
        let endedAt = ContinuousClock.now
        let sink = self.sink
        self.sink = .none
        if case .awaitedData(let handler) = result, !self.tellsAwaitedContent {
            // Nobody but a delegate could want these on its queue.
            self.complete(task, error)
            handler(error == nil ? sink.data : nil, self.response, error)
            self.tellMetrics(record, endedAt)
            return core.line.add {
                task.facts.withLock { $0.delegate = nil }
                core.ended(task, of: session)
                task.use(nil)
            }
        }
        core.line.add {
            // Behind `cancel()` and all that it could be asked in: `completed` is what its handlers see.
            if error == nil { self.tellFile(sink) }
            // Its delegate has had the file, and hears of the end when that is gone.
            if result.isDelegate { sink.discard() }
            self.complete(task, error)
            let faces = self.faces
            for face in faces where face.mayAnswer(.metrics) {
                let metrics = record.metrics(completedAt: endedAt)
                if face.tell(.metrics, { face.task?.urlSession(session, task: task, didFinishCollecting: metrics) }) {
                    break
                }
            }
            // The task is over: its delegate hears of it, and is let go.
            task.facts.withLock { $0.delegate = nil }
            self.tellResult(result, sink, error, faces)
            if !result.isDelegate { sink.discard() }
            core.ended(task, of: session)
            task.use(nil)
        }
    }

    private func tellMetrics(_ record: TaskMetricsRecord, _ endedAt: ContinuousClock.Instant) {
        let (task, session) = (self.task, self.session)
        self.core.line.tell(self.faces, .metrics) { face in
            let metrics = record.metrics(completedAt: endedAt)
            face.task?.urlSession(session, task: task, didFinishCollecting: metrics)
        }
    }

    private func complete(_ task: URLSessionTask, _ error: (any Error)?) {
        let isUnseen = task.changeUnseen {
            $0.error = error
            $0.state = .completed
        }
        guard !isUnseen else { return }
        task.change(\.error) { $0.error = error }
        task.change(\.state) { $0.state = .completed }
        if error == nil { task.facts.withLock { $0.progress }?.finish() }
    }

    private func tellFile(_ sink: ContentSink) {
        guard self.result.isDelegate, case .file(let file) = sink, let task = self.task as? URLSessionDownloadTask
        else { return }
        let session = self.session
        for face in self.faces where face.mayAnswer(.finishedDownload) {
            let told = face.tell(.finishedDownload) {
                face.download?.urlSession(session, downloadTask: task, didFinishDownloadingTo: file.url)
            }
            if told { return }
        }
    }

    private func tellResult(
        _ result: TransferResult, _ sink: ContentSink, _ error: (any Error)?, _ faces: [DelegateFace]
    ) {
        let response = self.response
        switch result {
        case .delegate:
            let (task, session) = (self.task, self.session)
            for face in faces where face.mayAnswer(.completion) {
                if face.tell(.completion, { face.task?.urlSession(session, task: task, didCompleteWithError: error) }) {
                    return
                }
            }
        // Beside a failure there is the response that had come, but none of its content.
        case .data(let handler), .awaitedData(let handler): handler(error == nil ? sink.data : nil, response, error)
        case .file(let handler): handler(error == nil ? sink.fileURL : nil, response, error)
        case .lastingFile(let handler):
            if error == nil { sink.keep() }
            handler(error == nil ? sink.fileURL : nil, response, error)
        case .bytes(let channel, let answer):
            if let error { answer(.failure(error)) }
            channel.finish(error)
        }
    }
}

extension ContentSink {
    /// Empty rather than missing: a response without content was a success.
    var data: Data {
        if case .memory(let data) = self { data } else { Data() }
    }

    var fileURL: URL? {
        if case .file(let file) = self { file.url } else { nil }
    }

    /// The file stays where it is.
    func keep() {
        if case .file(let file) = self { file.keep() }
    }

    /// Takes the file away, unless somebody moved it or it is to stay.
    func discard() {
        if case .file(let file) = self { file.discard() }
    }
}
