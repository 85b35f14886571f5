/// A drain: connections that are told to end, one after the other.
package struct Drain: Codable, Sendable, Equatable {
    package var id: String
    /// `running`, `paused`, `cancelled` or `ended`.
    package var state: String
    /// Connections meant when it began.
    package var total: Int
    /// Told to end, or found gone.
    package var told: Int
    /// Still there, of all that were meant.
    package var remaining: Int
    /// Reset at the deadline.
    package var cut: Int
    package var startedAt: String
    /// When the last one is told, as things stand: later by every pause.
    package var lastToldAt: String?
    /// What is still there then is reset.
    package var deadlineAt: String?
    /// Connections whose turn would come only at the deadline or after it: they are reset without being told.
    package var untold: Int
    /// That there are such ones, in words, and what to do.
    package var warning: String?
    package var endedAt: String?

    package init(id: String, state: String, total: Int, startedAt: String) {
        self.id = id
        self.state = state
        self.total = total
        self.told = 0
        self.remaining = total
        self.cut = 0
        self.startedAt = startedAt
        self.untold = 0
    }
}
