import CommandLineText
import SessionTasks
import StreamTransport
import Synchronization

/// A stream of `connect`, with STARTTLS before anything else if that was asked for.
final class StreamLink: ConnectLink {
    private struct Outcome {
        var taskFailure: TaskFailure?
        /// What went wrong before the task failed of it.
        var failure: ConnectFailure?
        var reading: Task<StreamTask.Chunk?, Never>?
        var isLeft = false
    }

    private let plan: ConnectPlan
    private let startTLS: ConnectPlan.StartTLS?
    private let task: StreamTask
    private let outcome = Mutex(Outcome())

    init(_ target: OpeningTarget, _ startTLS: ConnectPlan.StartTLS?, plan: ConnectPlan, on loop: Loop) {
        self.plan = plan
        self.startTLS = startTLS
        self.task = StreamTask(to: target, on: loop)
    }

    func open(opened: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) async {
        let task = self.task
        task.loop.execute {
            if self.startTLS == nil { task.openObserver = opened }
            task.whenEnded { failure in
                self.outcome.withLock { $0.taskFailure = failure }
                closed()
            }
            task.resumeOnLoop()
        }
        guard let startTLS = self.startTLS else { return }
        Task {
            do throws(ConnectFailure) {
                try await StartTLSTalk(task: task, url: self.plan.url).upgrade(startTLS)
                opened()
            } catch {
                self.outcome.withLock { $0.failure = $0.failure ?? error }
                task.cancel()
            }
        }
    }

    func receive() async -> [Received] {
        let task = self.task
        // A task of its own, so that `leave` can take the read back.
        let reading = Task { try? await task.read(maximum: StandardStreams.pieceSize) }
        let isLeft = self.outcome.withLock {
            $0.reading = reading
            return $0.isLeft
        }
        if isLeft { reading.cancel() }
        guard let chunk = await reading.value, !(chunk.isAtEnd && chunk.bytes.isEmpty) else { return [.end] }
        return chunk.isAtEnd ? [.bytes(chunk.bytes), .end] : [.bytes(chunk.bytes)]
    }

    func send(_ outgoing: [Outgoing]) async throws(TaskFailure) {
        for one in outgoing {
            switch one {
            case .text(let text): try await self.task.write(Array(text.utf8))
            case .data(let bytes): try await self.task.write(bytes)
            }
        }
    }

    func ping(_ payload: String) async throws(TaskFailure) -> Duration {
        throw .usage("there are no Pings on a stream")
    }

    func end(code: UInt16, reason: String) {
        self.task.closeWrite()
    }

    func leave() {
        let reading = self.outcome.withLock {
            $0.isLeft = true
            return $0.reading
        }
        reading?.cancel()
        self.task.closeRead()
    }

    func abort() {
        self.task.cancel()
    }

    // MARK: What is known of it

    var facts: ConnectionFacts { self.task.record.facts(url: "\(self.plan.url)") }

    func failure(wasOpen: Bool) -> ConnectFailure? {
        let (own, failure) = self.outcome.withLock { ($0.failure, $0.taskFailure) }
        if let own { return own }
        guard let failure else { return nil }
        return wasOpen ? ConnectFailure(failure) : ConnectFailure(opening: failure, of: self.plan.url)
    }

    func closingFacts(by party: ClosingFacts.Party) -> ClosingFacts {
        ClosingFacts(
            by: party, bytesReceived: self.task.record.bytesReceived, bytesSent: self.task.record.bytesSent)
    }
}
