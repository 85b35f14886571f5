import Foundation
import StreamTransport
import Synchronization

/// The process's main thread as a task executor, lent to a gateway's first loop once it is started.
///
/// A gateway with one loop then has no other thread, and system calls cost less in a process with one thread. Blocking
/// work must not run here, because it would block the loop.
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

    /// Runs `loop` on this thread until the loop is stopped, as soon as the current job suspends.
    func lend(to loop: Loop) {
        self.perform {
            loop.run()
            self.state.withLock { $0.loop = nil }
            // One more turn for jobs that were enqueued on the loop meanwhile; they must not block.
            loop.execute {}
            loop.turn()
        }
        self.state.withLock { $0.loop = loop }
    }

    /// Runs jobs on the calling thread. Called once, by the main thread.
    func serve() -> Never {
        while true {
            self.wake.wait()
            let body = self.state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
            body?()
        }
    }
}
