import Foundation

/// How much of what a protocol of the program has brought waits to be taken. The thread that brings more than there is
/// room for waits in line; one that must not wait is taken up to a higher limit. Usable from any thread.
package final class ProtocolBacklog: @unchecked Sendable {
    /// Bytes that may wait. A piece that is longer waits alone.
    package static let limit = 8 << 20
    /// Bytes that may wait where who brings them cannot be held.
    package static let hardLimit = 64 << 20

    private let condition = NSCondition()
    // Under the condition's lock, as all below.
    private var waiting = 0
    private var isOver = false

    package init() {}

    /// Counts `count` bytes that were brought, once there is room for them.
    /// - Parameter patience: how long the calling thread waits at most while nothing is taken, in seconds; 0 for not at
    ///   all.
    /// - Returns: `false` where more would wait than ever may; they are not counted then.
    package func add(_ count: Int, patience: TimeInterval) -> Bool {
        self.condition.withLock {
            var seen = self.waiting
            var deadline = Date(timeIntervalSinceNow: patience)
            while patience > 0, !self.hasRoom(for: count, within: Self.limit), !self.isOver {
                if !self.condition.wait(until: deadline), self.waiting >= seen { break }
                if self.waiting < seen { deadline = Date(timeIntervalSinceNow: patience) }
                seen = self.waiting
            }
            // What is brought behind the end is dropped, and not to be complained of.
            guard !self.isOver else { return true }
            guard self.hasRoom(for: count, within: Self.hardLimit) else { return false }
            self.waiting += count
            return true
        }
    }

    private func hasRoom(for count: Int, within limit: Int) -> Bool {
        self.waiting == 0 || self.waiting <= limit - min(count, limit)
    }

    /// So many bytes wait no more.
    package func take(_ count: Int) {
        self.condition.withLock {
            self.waiting = max(0, self.waiting - count)
            self.condition.broadcast()
        }
    }

    /// Nobody waits from now on.
    package func end() {
        self.condition.withLock {
            self.isOver = true
            self.waiting = 0
            self.condition.broadcast()
        }
    }
}
