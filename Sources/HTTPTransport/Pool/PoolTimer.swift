import NIOCore

/// Work that a pool's event loop does later, unless it is cancelled before.
package struct PoolTimer: Sendable {
    private let scheduled: Scheduled<Void>

    init(_ scheduled: Scheduled<Void>) {
        self.scheduled = scheduled
    }

    /// From any thread; nothing happens if the work was done.
    package func cancel() {
        self.scheduled.cancel()
    }
}
