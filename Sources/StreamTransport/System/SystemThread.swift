import CLinux
import Synchronization

/// A thread of the system, for work that must not share one with Swift's own pool.
package enum SystemThread {
    private final class Start {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// Runs `body` on a new thread that ends with it.
    /// - Parameter name: shown by the system's tools; cut after 15 bytes.
    /// - Returns: whether the system gave a thread.
    @discardableResult
    package static func start(named name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
        guard let thread = self.create(named: name, body) else { return false }
        _ = pthread_detach(thread)
        return true
    }

    /// - Returns: the thread, which must be detached or joined; `nil` if the system gives none.
    private static func create(named name: String, _ body: @escaping @Sendable () -> Void) -> pthread_t? {
        let start = unsafe Unmanaged.passRetained(Start(name: String(name.prefix(15)), body: body))
        var thread = pthread_t()
        let status = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                let start = unsafe Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                unsafe pthread_setname_np(pthread_self(), start.name)
                start.body()
                return nil
            }, start.toOpaque())
        guard status == 0 else {
            unsafe start.release()
            return nil
        }
        return thread
    }

    /// How many threads the system gives at the same time, at most `count`. They have ended when it returns.
    package static func availableCount(upTo count: Int) -> Int {
        let gate = Gate()
        var threads: [pthread_t] = []
        gate.whileClosed {
            while threads.count < count, let thread = self.create(named: "probe", { gate.pass() }) {
                threads.append(thread)
            }
        }
        for thread in threads { _ = pthread_join(thread, nil) }
        return threads.count
    }

    /// Holds threads until all are started.
    private final class Gate: Sendable {
        private let isClosed = Mutex(())

        func whileClosed(_ body: () -> Void) { self.isClosed.withLock { _ in body() } }

        func pass() { self.isClosed.withLock { _ in } }
    }

    /// Identifies the current thread.
    package static var current: UInt {
        UInt(pthread_self())
    }
}

extension SystemThread {
    /// Suspends the calling thread.
    package static func sleep(for duration: Duration) {
        let nanoseconds = duration.clampedNanoseconds
        guard nanoseconds > 0 else { return }
        var time = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        _ = unsafe nanosleep(&time, nil)
    }
}

/// An actor may name a loop as its executor, and then runs on the loop's thread, between its events.
extension Loop: SerialExecutor {
    package func enqueue(_ job: consuming ExecutorJob) {
        self.add(UnownedJob(job))
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        unsafe UnownedSerialExecutor(ordinary: self)
    }

    func runJob(_ job: UnownedJob) {
        unsafe job.runSynchronously(on: self.asUnownedSerialExecutor())
    }

    package func checkIsolated() {
        precondition(self.isCurrent, "this code belongs on its loop's thread")
    }
}
