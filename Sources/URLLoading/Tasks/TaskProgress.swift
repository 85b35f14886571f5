import Foundation

/// A task's progress as a tree: a whole of 100 parts, of which sending and receiving have theirs.
final class TaskProgress: @unchecked Sendable {
    let whole: Progress
    private let sending: Progress?
    private let receiving: Progress

    init(_ facts: borrowing TaskFacts, of task: URLSessionTask) {
        self.whole = Progress(totalUnitCount: 100)
        self.whole.kind = .file
        let sends = facts.expectedToSend != 0
        self.sending = sends ? Progress(totalUnitCount: -1, parent: self.whole, pendingUnitCount: 50) : nil
        self.receiving = Progress(totalUnitCount: -1, parent: self.whole, pendingUnitCount: sends ? 50 : 100)
        self.whole.isCancellable = true
        self.whole.isPausable = true
        self.whole.cancellationHandler = { [weak task] in task?.cancel() }
        self.whole.pausingHandler = { [weak task] in task?.suspend() }
        self.whole.resumingHandler = { [weak task] in task?.resume() }
        self.show(facts)
    }

    /// Not under the lock of the task: handlers of the program may run.
    func show(_ facts: borrowing TaskFacts) {
        if let sending {
            Self.set(
                sending, done: facts.sent,
                of: facts.expectedToSend >= 0 ? facts.expectedToSend : facts.clientExpectsToSend)
        }
        Self.set(
            self.receiving, done: facts.received,
            of: facts.expectedToReceive >= 0 ? facts.expectedToReceive : facts.clientExpectsToReceive)
    }

    /// Everything that was to come has come.
    func finish() {
        for part in [self.sending, self.receiving] {
            guard let part else { continue }
            let done = max(1, part.completedUnitCount)
            part.totalUnitCount = done
            part.completedUnitCount = done
        }
    }

    private static func set(_ part: Progress, done: Int64, of total: Int64) {
        if part.totalUnitCount != total { part.totalUnitCount = total >= 0 ? max(total, done) : -1 }
        part.completedUnitCount = done
    }
}
