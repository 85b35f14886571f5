import SessionTasks

/// The results of a stream task's operations, in the order of their completion.
final class TaskRecorder {
    private(set) var lines: [String] = []
    /// All bytes that reads gave, in order.
    private(set) var bytes: [UInt8] = []
    private(set) var end: TaskFailure??

    /// Records `name:bytes`, with a full stop after the last bytes of the stream, or `name!failure`.
    func read(_ task: StreamTask, _ name: String, _ minimum: Int, _ maximum: Int, timeout: Duration? = nil) {
        task.read(minimum: minimum, maximum: maximum, timeout: timeout) { result in
            switch result {
            case .success(let chunk):
                self.bytes += chunk.bytes
                self.lines.append("\(name):\(String(decoding: chunk.bytes, as: UTF8.self))\(chunk.isAtEnd ? "." : "")")
            case .failure(let failure): self.lines.append("\(name)!\(failure)")
            }
        }
    }

    /// Reads to the end of the stream, in pieces of any size.
    func readAll(_ task: StreamTask, _ finished: @escaping () -> Void = {}) {
        task.read(minimum: 1, maximum: 50_000, timeout: nil) { result in
            switch result {
            case .success(let chunk):
                self.bytes += chunk.bytes
                if chunk.isAtEnd { return finished() }
                self.readAll(task, finished)
            case .failure(let failure): self.lines.append("read!\(failure)")
            }
        }
    }

    /// `name` when it is done, or `name!failure`.
    func write(_ task: StreamTask, _ name: String, _ bytes: [UInt8], timeout: Duration? = nil) {
        task.write(bytes, timeout: timeout) { self.note(name, $0) }
    }

    func write(_ task: StreamTask, _ text: String) {
        self.write(task, text, Array(text.utf8))
    }

    func secure(_ task: StreamTask, _ name: String, _ settings: SecureSettings) {
        task.startSecure(settings) { self.note(name, $0) }
    }

    func note(_ name: String, _ result: Result<Void, TaskFailure>) {
        switch result {
        case .success: self.lines.append(name)
        case .failure(let failure): self.lines.append("\(name)!\(failure)")
        }
    }

    func watchEnd(_ task: StreamTask) {
        task.whenEnded { self.end = .some($0) }
    }
}
