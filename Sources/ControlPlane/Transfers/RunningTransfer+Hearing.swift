import Foundation
import NIOPosix
import Synchronization
import URLLoading

/// What the delegate of an attempt hears. What comes of an attempt that is not the last one any more says nothing.
extension RunningTransfer {
    private func update(_ attempt: Int, _ body: (inout State) -> Void) {
        self.state.withLock { if $0.attempt == attempt { body(&$0) } }
    }

    func received(_ data: Data, attempt: Int) {
        let isFull = self.state.withLock { state in
            guard state.attempt == attempt, [.running, .suspended].contains(state.stage), state.reason == nil else {
                return false
            }
            let fits = state.content.count + data.count <= self.order.bodyLimit
            guard fits, self.host.memory.reserve(data.count, limit: self.order.memoryLimit) else { return true }
            state.content.append(data)
            return false
        }
        guard isFull else { return }
        self.give(
            up: attempt,
            TransferFailure(
                "content-too-large", "The content does not fit into memory; name a destination, and it goes to a file.")
        )
    }

    func wrote(_ total: Int64, of expected: Int64, attempt: Int) {
        self.update(attempt) { state in
            state.written = total
            state.expectedToWrite = expected < 0 ? nil : expected
        }
    }

    func resumed(at offset: Int64, attempt: Int) {
        self.update(attempt) { $0.resumedAt = offset }
    }

    func measured(_ metrics: URLSessionTaskMetrics, attempt: Int) {
        self.update(attempt) { $0.metrics = metrics }
    }

    /// The file is taken away when this returns.
    func downloaded(_ location: URL, attempt: Int) {
        guard let place = self.order.destination else { return }
        self.update(attempt) { state in
            state.isSaving = true
            // Everything is there: only the disk may still take its time.
            state.timer?.cancel()
        }
        do throws(FileRefusal) {
            let draft = try place.draft()
            let source = draft.link(location.path) ? nil : try OpenFile(open(location.path, O_RDONLY | O_CLOEXEC))
            NIOThreadPool.singleton.submit { _ in self.save(draft, source, attempt) }
        } catch {
            self.saved(error, attempt)
        }
    }

    private func save(_ draft: TransferDraft, _ source: OpenFile?, _ attempt: Int) {
        do throws(FileRefusal) {
            if let source { try draft.copy(source) }
            try draft.publish(overwrites: self.order.overwrites)
            self.saved(nil, attempt)
        } catch {
            draft.discard()
            self.saved(error, attempt)
        }
    }

    private func saved(_ refusal: FileRefusal?, _ attempt: Int) {
        self.update(attempt) { state in
            state.isSaving = false
            if let refusal {
                state.reason = TransferFailure("file-unusable", "The destination: \(refusal.description).")
            }
            if state.isTaskOver { self.end(&state, error: nil) }
        }
    }

    func completed(_ error: (any Error)?, attempt: Int) {
        // Not under the lock: whoever lets go of a session ends its connections.
        let session = self.state.withLock { $0.attempt == attempt ? $0.session.take() : nil }
        session?.finishTasksAndInvalidate()
        if let data = (error as? URLError)?.downloadTaskResumeData { self.keep(data, attempt: attempt) }
        self.update(attempt) { state in
            state.isTaskOver = true
            if let task = state.task { state.counts = Counts(task) }
            state.task = nil
            if state.isSaving, error == nil {
                state.stage = .saving
            } else {
                self.end(&state, error: error)
            }
        }
    }

    private func end(_ state: inout State, error: (any Error)?) {
        state.timer?.cancel()
        state.timer = nil
        state.endedAt = self.host.now
        let isCancelled = (error as? URLError)?.code == .cancelled && state.reason == nil
        state.failure = state.reason ?? (isCancelled ? nil : error.map { TransferFailure($0) })
        state.stage = isCancelled ? .cancelled : state.failure == nil ? .finished : .failed
        self.tellEnd(state)
        guard state.stage != .finished else { return }
        self.host.memory.release(state.content.count)
        state.content = Data()
    }
}

extension RunningTransfer.Counts {
    init(_ task: URLSessionTask) {
        self.init(
            sent: task.countOfBytesSent, expectedToSend: task.countOfBytesExpectedToSend,
            received: task.countOfBytesReceived, expectedToReceive: task.countOfBytesExpectedToReceive,
            currentURL: task.currentRequest?.url?.absoluteString, response: task.response as? HTTPURLResponse)
    }
}
