/// One deadline on a loop, cheap to move: an owner keeps one timer and moves it at every sign of life.
package final class LoopTimer {
    /// When the timer is due; `nil` while it is not armed.
    package internal(set) var deadline: MonotonicInstant?
    /// The earliest entry for this timer in the queue; `distantFuture` when there is none.
    var queuedAt = MonotonicInstant.distantFuture
    var target: (any TimerTarget)?

    package init() {}
}
