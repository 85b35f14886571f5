import Foundation

/// Writes what happens to standard output and to a file, and waits for it. Thread-safe.
final class EventLog: @unchecked Sendable {  // The condition guards its vars.
    let folder: URL
    private let condition = NSCondition()
    private var completions = 0
    private var hasFinishedEvents = false
    private var isInvalid = false
    private var handler: (@Sendable () -> Void)?

    init(folder: URL) {
        self.folder = folder
    }

    func onEvents(_ handler: @escaping @Sendable () -> Void) { self.handler = handler }

    func write(_ line: String) {
        let bytes = Data((line + "\n").utf8)
        let descriptor = open(self.folder.appending(path: "log").path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        guard descriptor >= 0 else { exit(66) }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        try? file.write(contentsOf: bytes)
        try? FileHandle.standardOutput.write(contentsOf: bytes)
    }

    private func note(_ line: String, _ change: () -> Void) {
        self.write(line)
        self.condition.lock()
        change()
        self.condition.broadcast()
        self.condition.unlock()
    }

    func completed(_ line: String) { self.note(line) { self.completions += 1 } }

    func eventsFinished() {
        self.note("events finished") { self.hasFinishedEvents = true }
        self.handler?()
    }

    func invalidated() { self.note("invalid") { self.isInvalid = true } }

    private func wait(until isDone: () -> Bool) {
        self.condition.lock()
        while !isDone() { self.condition.wait() }
        self.condition.unlock()
    }

    func waitForCompletions(_ count: Int) { self.wait { self.completions >= count } }
    func waitForEvents() { self.wait { self.hasFinishedEvents } }
    func waitUntilInvalid() { self.wait { self.isInvalid } }
}
