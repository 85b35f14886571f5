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
    package mutating func pause() -> Bool {
        switch self {
        case .running:
            self = .paused
            return true
        case .paused, .cancelled, .ended:
            return false
        }
    }

    /// - Returns: `false` if the drain is not paused.
    package mutating func resume() -> Bool {
        switch self {
        case .paused:
            self = .running
            return true
        case .running, .cancelled, .ended:
            return false
        }
    }

    /// - Returns: `false` if the drain is over.
    package mutating func cancel() -> Bool {
        switch self {
        case .running, .paused:
            self = .cancelled
            return true
        case .cancelled, .ended:
            return false
        }
    }

    /// All connections are closed, or the drain was cancelled.
    package mutating func finish() {
        switch self {
        case .running, .paused: self = .ended
        case .cancelled, .ended: break
        }
    }
}
