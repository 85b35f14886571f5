import StreamTransport
import Synchronization

/// Takes log lines from any thread and writes them to standard error from a thread of its own, so that a slow reader or
/// a full disk never holds up a connection.
///
/// Bounded: lines beyond `limit` waiting bytes are dropped and counted, and the count is logged once there is room
/// again.
package final class LogWriter: Sendable {
    /// Bytes of lines that may wait.
    package static let limit = 4 << 20

    private struct Queue {
        var waiting: [UInt8] = []
        var dropped = 0
        var writing = false
    }

    private let queue = Mutex(Queue())
    private let write: @Sendable ([UInt8]) -> Void
    private let hasThread: Bool
    /// Lines that were lost because too many waited or because they could not be written.
    package let lost = Atomic<Int>(0)

    /// - Parameters:
    ///   - onOwnThread: `false` where `write` never waits: whoever logs writes.
    ///   - write: where lines go; standard error unless said.
    package init(onOwnThread: Bool = true, write: (@Sendable ([UInt8]) -> Void)? = nil) {
        self.hasThread = onOwnThread
        self.write = write ?? { _ = StandardError.write($0) }
    }

    /// Queues `line`, to which a line feed is added.
    package func log(_ line: String) {
        let start = self.queue.withLock { queue -> Bool in
            guard queue.waiting.count < Self.limit else {
                queue.dropped += 1
                return false
            }
            queue.waiting.append(contentsOf: line.utf8)
            queue.waiting.append(0x0A)
            defer { queue.writing = true }
            return !queue.writing
        }
        guard start else { return }
        if !self.hasThread || !SystemThread.start(named: "log", { self.drain() }) { self.drain() }
    }

    /// Runs until nothing waits: an idle process keeps no thread for its log.
    private func drain() {
        while let bytes = self.take() { self.write(bytes) }
    }

    private func take() -> [UInt8]? {
        self.queue.withLock { queue in
            guard !queue.waiting.isEmpty else {
                queue.writing = false
                return nil
            }
            var bytes = queue.waiting
            queue.waiting = []
            if queue.dropped > 0 {
                bytes.append(contentsOf: "\(queue.dropped) log lines were dropped: the log's reader is too slow\n".utf8)
                self.lost.add(queue.dropped, ordering: .relaxed)
                queue.dropped = 0
            }
            return bytes
        }
    }

    /// Writes what waits before it returns; for the end of the process.
    package func flush() {
        while self.queue.withLock({ $0.writing }) { SystemThread.yield() }
    }
}
