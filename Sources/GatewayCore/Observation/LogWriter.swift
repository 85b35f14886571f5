import StreamTransport
import Synchronization

/// Takes lines from any thread and writes them from a thread of its own, so that a slow or sleeping reader, or a full
/// disk, never holds up a connection, the start or the end.
///
/// Bounded: lines beyond `limit` waiting bytes are dropped and counted, and the count is logged as soon as the reader
/// takes lines again.
package final class LogWriter: Sendable {
    /// Bytes of lines that may wait; as many again are with the writing thread.
    package static let limit = 4 << 20
    /// How long the end of the process waits for a reader that takes no lines.
    package static let patience = Duration.seconds(2)
    /// Between two looks at whether all is written, at the end of the process.
    private static let pause = Duration.milliseconds(2)

    private struct Queue {
        var waiting: [UInt8] = []
        var dropped = 0
        var writing = false
    }

    private let queue = Mutex(Queue())
    private let write: @Sendable ([UInt8]) -> Void
    private let notice: @Sendable (Int) -> String
    private let hasThread: Bool
    /// Lines that were lost because too many waited.
    package let lost = Atomic<Int>(0)

    /// - Parameters:
    ///   - onOwnThread: `false` where `write` never waits: whoever logs writes.
    ///   - write: where lines go; standard error unless said.
    ///   - notice: the line that tells how many were dropped.
    package init(
        onOwnThread: Bool = true, write: (@Sendable ([UInt8]) -> Void)? = nil,
        notice: @escaping @Sendable (Int) -> String = { "\($0) log lines were dropped: the log's reader is too slow" }
    ) {
        self.hasThread = onOwnThread
        self.notice = notice
        self.write = write ?? { _ = StandardError.write($0) }
    }

    /// Queues `line`, to which a line feed is added. Never waits for the reader.
    package func log(_ line: String) {
        let start = self.queue.withLock { queue -> Bool in
            guard queue.waiting.count < Self.limit else {
                queue.dropped += 1
                self.lost.add(1, ordering: .relaxed)
                return false
            }
            Self.add(line, to: &queue)
            defer { queue.writing = true }
            return !queue.writing
        }
        guard start else { return }
        guard self.hasThread else { return self.drain() }
        // Without a thread the lines wait for the next one that is logged.
        if !SystemThread.start(named: "log", { self.drain() }) { self.queue.withLock { $0.writing = false } }
    }

    private static func add(_ line: String, to queue: inout Queue) {
        queue.waiting.append(contentsOf: line.utf8)
        queue.waiting.append(0x0A)
    }

    /// Runs until nothing waits: an idle process keeps no thread for its log.
    private func drain() {
        while let bytes = self.take() { self.write(bytes) }
    }

    private func take() -> [UInt8]? {
        self.queue.withLock { queue in
            if queue.dropped > 0 {
                Self.add(self.notice(queue.dropped), to: &queue)
                queue.dropped = 0
            }
            guard !queue.waiting.isEmpty else {
                queue.writing = false
                return nil
            }
            defer { queue.waiting = [] }
            return queue.waiting
        }
    }

    /// Waits until all lines are written, or `patience` is over; for the end of the process.
    /// - Returns: whether all are written.
    @discardableResult
    package func flush(within patience: Duration = LogWriter.patience) -> Bool {
        let deadline = ContinuousClock.now.advanced(by: patience)
        while self.queue.withLock({ $0.writing }) {
            guard ContinuousClock.now < deadline else { return false }
            SystemThread.sleep(for: Self.pause)
        }
        return true
    }
}
