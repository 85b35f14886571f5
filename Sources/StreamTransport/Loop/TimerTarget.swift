/// Told when a timer is due.
package protocol TimerTarget: AnyObject {
    /// The timer is no longer armed. Called on the loop.
    func timerFired(_ timer: LoopTimer)
}
