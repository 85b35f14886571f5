import Foundation
import StreamTransport
import Synchronization

/// Drives a task that has a connection of its own, on one of `ConnectionLoops`.
protocol ConnectionDriving: TaskDriving {
    var life: ConnectionLife { get }
    /// The task is resumed for the first time.
    func begin()
    func hold()
    func goOn()
    /// Ends what runs the task; `life.verdict` says why. Ends in `life.end`.
    func breakOff()
}

extension ConnectionDriving {
    // MARK: From any thread

    func resumed() { self.life.loop.execute { self.reconcile() } }
    func suspended() { self.life.loop.execute { self.reconcile() } }
    func cancelled() { self.life.loop.execute { self.fail(LoadFailure.error(.cancelled, url: self.life.url)) } }
    /// A connection of its own waits for nobody.
    func priorityChanged(_ priority: Float) {}

    // MARK: On the loop

    /// Does what the task's state asks for now, however often that changed meanwhile.
    private func reconcile() {
        guard let state = self.life.task?.facts.withLock({ $0.state }) else { return }
        switch (state, self.life.stage) {
        case (.running, .waiting):
            self.life.stage = .running
            self.life.startResourceTimer { self.timeOut() }
            self.begin()
        case (.running, .held):
            self.life.stage = .running
            self.life.goOnWithResourceTimer()
            self.goOn()
        case (.suspended, .running):
            self.life.stage = .held
            self.life.holdResourceTimer()
            self.hold()
        default: break
        }
    }

    private func timeOut() {
        self.fail(
            LoadFailure.error(.timedOut, url: self.life.url, text: "The task lasted longer than its session allows."))
    }

    /// Ends the task.
    func fail(_ error: URLError) {
        guard self.life.stage != .over else { return }
        self.life.verdict = self.life.verdict ?? error
        self.breakOff()
    }
}
