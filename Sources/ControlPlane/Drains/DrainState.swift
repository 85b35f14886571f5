/// State of a drain. The raw value is its `state` in the REST interface.
package enum DrainState: String, CaseIterable, Sendable {
    case running, paused
    /// Cancelled by request; the connections that are still open stay open.
    case cancelled
    /// All connections are closed.
    case ended

    /// Whether no more connections are closed.
    package var isOver: Bool {
        switch self {
        case .running, .paused: false
        case .cancelled, .ended: true
        }
    }

    /// - Returns: `false` if the drain is not running.
    package mutating func pause() -> Bool { self.change(to: .paused, if: self == .running) }

    /// - Returns: `false` if the drain is not paused.
    package mutating func resume() -> Bool { self.change(to: .running, if: self == .paused) }

    /// - Returns: `false` if the drain is over.
    package mutating func cancel() -> Bool { self.change(to: .cancelled, if: !self.isOver) }

    /// All connections are closed, or the drain was cancelled.
    package mutating func finish() { _ = self.change(to: .ended, if: !self.isOver) }

    private mutating func change(to state: DrainState, if isAllowed: Bool) -> Bool {
        if isAllowed { self = state }
        return isAllowed
    }
}
