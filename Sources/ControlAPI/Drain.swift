/// A drain: connections are asked to close, one after the other.
package struct Drain: Codable, Sendable, Equatable {
    package var id: String
    /// `running`, `paused`, `cancelled` or `ended`.
    package var state: String
    /// Connections meant when it began.
    package var total: Int
    /// Connections notified, or closed before.
    package var told: Int
    /// Still there, of all that were meant.
    package var remaining: Int
    /// Reset at the deadline.
    package var cut: Int
    package var startedAt: String
    /// Expected time of the last notification; every pause delays it.
    package var lastToldAt: String?
    /// Connections still open then are reset.
    package var deadlineAt: String?
    /// Connections whose notification would be due only at the deadline or later: they are reset without notice.
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

/// Which connections are meant, and how they are to end.
package struct BulkRequest: Codable, Sendable, Equatable, StrictlyRead {
    /// The filters of the list, as `{"route": "echo", "label": "team:blue", "minAgeMs": 60000}`; of several values of
    /// one, a list, or a text with commas.
    package var selector: [String: JSONValue]?
    /// Needed for an empty selector: every connection.
    package var all: Bool?
    /// Only counts.
    package var preview: Bool?
    /// Of the Close to WebSockets. Default: 1000; of a drain 1001.
    package var code: Int?
    package var reason: String?
    /// Ends with a reset.
    package var abort: Bool?
    /// Of a drain: connections notified per second, 0.001 to 100 000. Default: 100.
    package var ratePerSecond: Double?
    /// Of a drain: upper bound of the random delay of each notification.
    package var jitterMs: Double?
    /// Of a drain: connections still open after this time are reset.
    package var deadlineMs: Double?

    package static let members = [
        "selector", "all", "preview", "code", "reason", "abort", "ratePerSecond", "jitterMs", "deadlineMs",
    ]

    package init() {}
}

/// Result of a bulk operation.
package struct BulkAnswer: Codable, Sendable, Equatable {
    /// Connections that are meant.
    package var matched: Int
    /// Of them, notified; 0 in a preview.
    package var told: Int
    /// In a preview of a drain: from its start to the last notification, in milliseconds.
    package var takesMs: Int?
    /// Of a drain that is only counted: that its deadline comes too soon, in words, and what to do.
    package var warning: String?

    package init(matched: Int, told: Int) {
        self.matched = matched
        self.told = told
    }
}
