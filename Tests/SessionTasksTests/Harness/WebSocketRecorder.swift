import SessionTasks

/// The results of a WebSocket task's operations, in the order of their completion.
final class WebSocketRecorder {
    private(set) var lines: [String] = []
    private(set) var messages: [WebSocketTask.Message] = []
    private(set) var end: WebSocketEnd?

    func receive(_ task: WebSocketTask, _ name: String = "received") {
        task.receive { result in
            switch result {
            case .success(let message):
                self.messages.append(message)
                switch message {
                case .string(let text): self.lines.append("\(name):\(text)")
                case .data(let bytes): self.lines.append("\(name):\(bytes.count) bytes")
                }
            case .failure(let failure): self.lines.append("\(name)!\(failure)")
            }
        }
    }

    /// Receives until the task fails.
    func receiveAll(_ task: WebSocketTask) {
        task.receive { result in
            guard case .success(let message) = result else { return }
            self.messages.append(message)
            self.receiveAll(task)
        }
    }

    func send(_ task: WebSocketTask, _ name: String, _ message: WebSocketTask.Message) {
        task.send(message) { self.note(name, $0) }
    }

    func send(_ task: WebSocketTask, _ text: String) {
        self.send(task, text, .string(text))
    }

    func ping(_ task: WebSocketTask, _ name: String) {
        task.sendPing([]) { self.note(name, $0) }
    }

    private func note(_ name: String, _ result: Result<Void, TaskFailure>) {
        switch result {
        case .success: self.lines.append(name)
        case .failure(let failure): self.lines.append("\(name)!\(failure)")
        }
    }

    func watchEnd(_ task: WebSocketTask) {
        task.whenEnded { self.end = $0 }
    }
}
