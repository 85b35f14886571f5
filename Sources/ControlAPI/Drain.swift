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
    /// Of a drain: connections told to end each second, 0.001 to 100 000. Default: 100.
    package var ratePerSecond: Double?
    /// Of a drain: each is told up to so much later, by chance.
    package var jitterMs: Double?
    /// Of a drain: what is then still there is reset.
    package var deadlineMs: Double?

    package static let members = [
        "selector", "all", "preview", "code", "reason", "abort", "ratePerSecond", "jitterMs", "deadlineMs",
    ]

    package init() {}
}

/// What a bulk verb did.
package struct BulkAnswer: Codable, Sendable, Equatable {
    /// Connections that are meant.
    package var matched: Int
    /// Of them, told to end; 0 in a preview.
    package var told: Int
    /// Of a drain that is only counted: from its beginning until the last one is told, in milliseconds.
    package var takesMs: Int?
    /// Of a drain that is only counted: that its deadline comes too soon, in words, and what to do.
    package var warning: String?

    package init(matched: Int, told: Int) {
        self.matched = matched
        self.told = told
    }
}
