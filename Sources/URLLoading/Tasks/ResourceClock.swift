import HTTPTransport
import Synchronization

/// Ends the transfers of one session that take longer than they may. One timer serves them all, since nearly every one
/// ends long before: it rings for the first, and looks then who else there is.
///
/// On the session's event loop.
final class ResourceClock: @unchecked Sendable {
    private var timer: (rings: ContinuousClock.Instant, timer: PoolTimer)?

    deinit { self.timer?.timer.cancel() }

    /// Rings at `deadline`, if not before.
    func watch(until deadline: ContinuousClock.Instant, for core: SessionCore) {
        if let timer = self.timer, timer.rings <= deadline { return }
        self.timer?.timer.cancel()
        let delay = max(.zero, ContinuousClock.now.duration(to: deadline))
        self.timer = (
            deadline,
            core.pool.schedule(after: delay) { [weak self, weak core] in
                if let self, let core { self.ring(core) }
            }
        )
    }

    private func ring(_ core: SessionCore) {
        self.timer = nil
        let now = ContinuousClock.now
        var next: ContinuousClock.Instant?
        for task in core.state.withLock({ Array($0.tasks.values) }) {
            guard let transfer = task.driver as? Transfer, let deadline = transfer.resourceDeadline else { continue }
            if deadline <= now {
                transfer.tookTooLong()
            } else {
                next = min(next ?? deadline, deadline)
            }
        }
        if let next { self.watch(until: next, for: core) }
    }
}
