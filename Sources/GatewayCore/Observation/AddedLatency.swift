import SessionTasks
import StreamTransport

/// How long what tunnels relay stays in the process: from its read until the kernel has taken its last byte on the
/// other side. Taken of a few reads alone. On its loop.
package final class AddedLatency {
    /// Reads of one side of a tunnel of which one is taken; the first is.
    package static let interval: UInt8 = 64
    /// Reads that are waited for at once. Beyond that the oldest counts as it stands: a peer that takes nothing is told
    /// of, and hides nobody.
    package static let pendingLimit = 16

    private struct Pending {
        let end: ObjectIdentifier
        let readAt: MonotonicInstant
        /// Bytes that the kernel must have taken on that connection.
        let target: UInt64
    }

    /// In microseconds.
    package private(set) var distribution = Distribution()
    /// Only where somebody may ask.
    package var isWanted = false
    private var pending: [Pending] = []

    package init() {}

    package static func shared(on loop: Loop) -> AddedLatency {
        loop.local(AddedLatency.self) { AddedLatency() }
    }

    package func left(_ readAt: MonotonicInstant, at now: MonotonicInstant) {
        self.distribution.add(readAt.duration(to: now))
    }

    /// The kernel has yet to take some of what was read.
    package func waits(_ end: AnyObject, _ readAt: MonotonicInstant, until target: UInt64, at now: MonotonicInstant) {
        if self.pending.count >= Self.pendingLimit { self.left(self.pending.removeFirst().readAt, at: now) }
        self.pending.append(Pending(end: ObjectIdentifier(end), readAt: readAt, target: target))
    }

    /// - Parameters:
    ///   - sent: bytes that the kernel took on this connection; `.max` where nothing waits.
    /// - Returns: whether something of `end` is still waited for.
    package func progressed(_ end: AnyObject, sent: UInt64, at now: MonotonicInstant) -> Bool {
        let name = ObjectIdentifier(end)
        var isWaiting = false
        self.pending.removeAll { one in
            guard one.end == name else { return false }
            guard one.target <= sent else {
                isWaiting = true
                return false
            }
            self.left(one.readAt, at: now)
            return true
        }
        return isWaiting
    }

    /// The tunnel is over: what did not leave will not.
    package func forget(_ end: AnyObject) {
        let name = ObjectIdentifier(end)
        self.pending.removeAll { $0.end == name }
    }
}
