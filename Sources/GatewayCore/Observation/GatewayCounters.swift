import Synchronization

/// Counts of what the gateway refused or lost, since it began.
package final class GatewayCounters: Sendable {
    private let counts = Mutex<[String: UInt64]>([:])

    package init() {}

    package func count(_ name: String) {
        self.counts.withLock { $0[name, default: 0] += 1 }
    }

    func acceptFailed() { self.count("accept-failed") }
    func acceptingPaused() { self.count("accepting-paused") }

    /// All counts by name.
    package var all: [String: UInt64] {
        self.counts.withLock { $0 }
    }
}
