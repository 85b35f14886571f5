/// A timer that can be paused, as for a suspended task; the remaining time starts when it is resumed.
/// Confined to its loop.
package struct HoldableTimer {
    private enum State {
        case running
        /// - Parameter left: time left of an armed timer; `nil` where it is not armed.
        case held(left: Duration?)
    }

    package let timer = LoopTimer()
    private var state = State.running

    package init() {}

    package var isHeld: Bool {
        if case .held = self.state { true } else { false }
    }

    package mutating func arm(after timeout: Duration, on loop: Loop, target: any TimerTarget) {
        switch self.state {
        case .running: loop.arm(self.timer, after: timeout, target: target)
        case .held: self.state = .held(left: timeout)
        }
    }

    package mutating func disarm(on loop: Loop) {
        loop.disarm(self.timer)
        if self.isHeld { self.state = .held(left: nil) }
    }

    /// - Parameter target: of an armed timer.
    package mutating func setHeld(_ isHeld: Bool, on loop: Loop, target: any TimerTarget) {
        switch self.state {
        case .running where isHeld:
            self.state = .held(left: self.timer.deadline.map { max(.zero, loop.now.duration(to: $0)) })
            loop.disarm(self.timer)
        case .held(let left) where !isHeld:
            self.state = .running
            if let left { loop.arm(self.timer, after: left, target: target) }
        case .running, .held: break
        }
    }
}
