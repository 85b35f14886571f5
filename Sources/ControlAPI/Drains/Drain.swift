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
    package var endedAt: String?

    package init(id: String, state: String, total: Int, startedAt: String) {
        self.id = id
        self.state = state
        self.total = total
        self.told = 0
        self.remaining = total
        self.cut = 0
        self.startedAt = startedAt
    }
}
