import StreamTransport

/// The end of the gateway: a first signal drains, a second ends at once.
package struct ShutdownMachine: Sendable {
    private enum State: Sendable {
        case running
        case draining(DrainSchedule)
        case over
    }

    package enum SignalAction: Hashable, Sendable {
        /// Stop accepting, and close what is open by this schedule.
        case drain(DrainSchedule)
        /// Reset what is open, and exit.
        case endAtOnce
        case ignore
    }

    package enum ProgressAction: Hashable, Sendable {
        /// Tell the connections to close until this many were told in all; look again at `next`.
        case close(upTo: Int, next: MonotonicInstant)
        /// The deadline passed: reset what is open, and exit 0.
        case endAtOnce
        /// Nothing is open any more: exit 0.
        case finished
        case ignore
    }

    private var state = State.running

    package init() {}

    package var isDraining: Bool {
        if case .draining = self.state { true } else { false }
    }

    /// SIGTERM or SIGINT came.
    /// - Parameter open: connections open now.
    package mutating func signalled(_ settings: DrainSettings, open: Int, at now: MonotonicInstant) -> SignalAction {
        switch self.state {
        case .running:
            let schedule = DrainSchedule(settings, count: open, began: now)
            self.state = .draining(schedule)
            return .drain(schedule)
        case .draining:
            self.state = .over
            return .endAtOnce
        case .over:
            return .ignore
        }
    }

    /// A connection ended or a time came.
    /// - Parameters:
    ///   - open: connections still open.
    ///   - told: connections told to close so far.
    package mutating func progressed(open: Int, told: Int, at now: MonotonicInstant) -> ProgressAction {
        guard case .draining(let schedule) = self.state else { return .ignore }
        if open <= 0 {
            self.state = .over
            return .finished
        }
        if now >= schedule.deadline {
            self.state = .over
            return .endAtOnce
        }
        let due = max(schedule.due(at: now), told)
        return .close(upTo: due, next: min(schedule.next(after: due) ?? schedule.deadline, schedule.deadline))
    }
}
