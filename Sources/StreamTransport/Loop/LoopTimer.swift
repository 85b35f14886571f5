/// One deadline on a loop, cheap to move: an owner keeps one timer and moves it at every sign of life.
package final class LoopTimer {
    /// As `deadline`, stored apart from what other modules see of it: what only this module touches costs no check of
    /// exclusive access.
    var due: MonotonicInstant?
    /// The earliest entry for this timer in the queue; `distantFuture` when there is none.
    var queuedAt = MonotonicInstant.distantFuture
    var target: (any TimerTarget)?

    package init() {}

    /// When the timer is due; `nil` while it is not armed.
    package var deadline: MonotonicInstant? { self.due }
}
