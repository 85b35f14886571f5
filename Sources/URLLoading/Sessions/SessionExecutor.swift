import DequeModule
import Dispatch
import HTTPTransport
import StreamTransport
import Synchronization

/// Runs the loads of one session, one piece of work after the other: on a queue until a connection is needed, then on the
/// loop of the session's connections.
///
/// Loads without a connection, such as those of a `URLProtocol`, therefore start no loop.
package final class SessionExecutor: @unchecked Sendable {  // `openPool` is written once, before `hasPool`.
    package typealias Work = @Sendable () -> Void

    private struct State {
        /// Empty once a loop does the work.
        var waiting = Deque<Work>()
        var isRunning = false
        /// Made, and used as soon as the current piece of work has ended.
        var nextPool: ConnectionPool?
        /// Continues that piece of work, before any that waits.
        var continuations: [Work] = []
        var isClosed = false
    }

    private let settings: PoolSettings
    private let loop: Loop?
    /// A serial queue gets a thread even if the program blocks all threads of the system's pool.
    private let queue = DispatchQueue(label: "URLSession loads")
    private let state = Mutex(State())
    private var openPool: ConnectionPool?
    private let hasPool = Atomic(false)
    /// The thread that does work outside of the loop; 0 while none does.
    private let thread = Atomic<UInt>(0)

    /// - Parameter loop: does all work, loads without a connection included; `nil` chooses a shared loop when the first
    ///   connection is needed.
    package init(_ settings: PoolSettings, on loop: Loop? = nil) {
        self.settings = settings
        self.loop = loop
        if let loop { self.publish(ConnectionPool(settings: settings, on: loop)) }
    }

    /// The session's connections; `nil` before the first one is needed.
    package var pool: ConnectionPool? { self.hasPool.load(ordering: .acquiring) ? self.openPool : nil }

    private func publish(_ pool: ConnectionPool) {
        self.openPool = pool
        self.hasPool.store(true, ordering: .releasing)
    }

    /// Whether the caller is a piece of work of this executor.
    package var isCurrent: Bool {
        self.pool?.loop.isCurrent ?? (self.thread.load(ordering: .relaxed) == SystemThread.current)
    }

    /// Runs `work` immediately if the caller is on the executor. From any thread.
    package func execute(_ work: @escaping Work) {
        if self.isCurrent { work() } else { self.executeLater(work) }
    }

    /// As `execute`, but never immediately.
    package func executeLater(_ work: @escaping Work) {
        if let pool { return pool.loop.execute(work) }
        let mustStart = self.state.withLock { state in
            if let pool {
                pool.loop.execute(work)
                return false
            }
            state.waiting.append(work)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { self.queue.async { while let work = self.next() { work() } } }
    }

    private func next() -> Work? {
        self.state.withLock { state in
            if let pool = state.nextPool {
                self.moveWork(of: &state, to: pool)
            } else if let work = state.waiting.popFirst() {
                self.thread.store(SystemThread.current, ordering: .relaxed)
                return work
            }
            state.isRunning = false
            self.thread.store(0, ordering: .relaxed)
            return nil
        }
    }

    private func moveWork(of state: inout State, to pool: ConnectionPool) {
        state.nextPool = nil
        // Makes the loop wait until the pool is known to all.
        pool.loop.execute { self.state.withLock { _ in } }
        for work in state.continuations { pool.loop.execute(work) }
        for work in state.waiting { pool.loop.execute(work) }
        state.continuations = []
        state.waiting = []
        // Before others find it, whose exchanges it is to refuse.
        if state.isClosed { pool.close() }
        self.publish(pool)
    }

    // MARK: Connections

    /// The loop of a further connection.
    /// - Returns: `nil` if the system has no descriptors or threads left; the next call tries again.
    func nextLoop() -> Loop? { self.loop ?? SharedLoops.next() }

    /// Makes the pool, which later pieces of work find. On the executor.
    /// - Parameter work: the first of them, which keeps its place before those that wait already.
    /// - Returns: `false` if the system has no descriptors or threads left; the next call tries again.
    package func makePool(then work: @escaping Work = {}) -> Bool {
        guard self.pool == nil else {
            self.executeLater(work)
            return true
        }
        guard let loop = self.nextLoop() else { return false }
        let pool = ConnectionPool(settings: self.settings, on: loop)
        self.state.withLock { state in
            state.nextPool = state.nextPool ?? pool
            state.continuations.append(work)
        }
        return true
    }

    /// Closes the connections as soon as they are idle, and opens no more.
    package func close() {
        self.state.withLock { $0.isClosed = true }
        self.pool?.close()
    }
}

/// State used on a session's executor only; debug builds check each access.
final class ExecutorIsolated<Value>: @unchecked Sendable {  // Only the executor's work reaches the value.
    private let executor: SessionExecutor
    private var isolated: Value

    init(_ value: Value, to executor: SessionExecutor) {
        self.executor = executor
        self.isolated = value
    }

    var value: Value {
        get {
            assert(self.executor.isCurrent, "not on the session's executor")
            return self.isolated
        }
        _modify {
            assert(self.executor.isCurrent, "not on the session's executor")
            yield &self.isolated
        }
    }
}
