import Foundation
import StreamTransport
import Synchronization

/// The process's first thread, as an executor of tasks, and lent to a gateway's first loop as soon as there is one.
///
/// So a gateway of one loop has no other thread once everything stands, and in a process of one thread the kernel's calls
/// cost less. What takes long must not run here then: the loop would stand still.
final class MainThread: TaskExecutor, Sendable {
    static let shared = MainThread()

    private struct State {
        var loop: Loop?
        var waiting: [@Sendable () -> Void] = []
    }

    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)

    private init() {}

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.perform { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    private func perform(_ body: @escaping @Sendable () -> Void) {
        let loop = self.state.withLock { state in
            if state.loop == nil { state.waiting.append(body) }
            return state.loop
        }
        guard let loop else {
            self.wake.signal()
            return
        }
        loop.execute(body)
    }

    /// Lends the thread to `loop` until that is stopped, as soon as what runs on it now waits for something.
    func lend(to loop: Loop) {
        self.perform {
            loop.run()
            self.state.withLock { $0.loop = nil }
            // One turn more for what it was given meanwhile, which must not wait for anything.
            loop.execute {}
            loop.turn()
        }
        self.state.withLock { $0.loop = loop }
    }

    /// Called once, by the thread itself.
    func serve() -> Never {
        while true {
            self.wake.wait()
            let body = self.state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
            body?()
        }
    }
}
