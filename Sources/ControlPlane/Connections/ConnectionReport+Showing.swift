import GatewayCore
import SessionTasks
import StreamTransport

extension ConnectionReport {
    /// The moment that it shows: how long something lasts is shown as it was then.
    var shownAt: MonotonicInstant { self.closing?.at ?? self.takenAt }

    /// When payload last moved, or the beginning where none has; never behind `shownAt`, though some may have moved after
    /// the report was taken: counters are read when they are shown.
    var idleSince: MonotonicInstant { min(self.record?.lastActivityAt ?? self.createdAt, self.shownAt) }

    /// Since payload last moved.
    package var idle: Duration { self.idleSince.duration(to: self.shownAt) }
}

extension TaskState {
    /// As it is shown.
    package var name: String {
        switch self {
        case .suspended: "suspended"
        case .running: "running"
        case .canceling: "canceling"
        case .completed: "completed"
        }
    }
}
