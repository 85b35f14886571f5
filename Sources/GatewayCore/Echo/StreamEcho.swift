import SessionTasks
import StreamTransport

/// Sends every byte back, and the end of the stream after them.
final class StreamEcho: TransportConsumer {
    /// Given up when the task ends, which it always does.
    private var task: StreamTask?
    private let watermarks: BufferWatermarks

    init(watermarks: BufferWatermarks) {
        self.watermarks = watermarks
    }

    func start(_ task: StreamTask) {
        self.task = task
        task.attach(self)
        task.resumeReading()
    }

    func bytesReceived(_ bytes: inout MutableRawSpan) -> Int {
        guard let task = self.task else { return bytes.byteCount }
        if task.send(bytes.bytes) > self.watermarks.high {
            task.pauseReading()
            task.awaitProgress()
        }
        return bytes.byteCount
    }

    func inputClosed() {
        self.task?.close(linger: .seconds(5))
    }

    func outputProgressed() {
        guard let task = self.task, task.queuedBytes <= self.watermarks.low else { return }
        task.resumeReading()
    }

    func transportEnded(_ end: TransportEnd) {
        self.task = nil
    }
}
