/// A drain: connections are asked to close, one after another.
package struct Drain: Codable, Sendable, Equatable {
    package var id: String
    /// `running`, `paused`, `cancelled` or `ended`.
    package var state: String
    /// Connections selected at the start.
    package var total: Int
    /// Connections that were notified, or closed before that.
    package var told: Int
    /// Selected connections that are still open.
    package var remaining: Int
    /// Connections reset at the deadline.
    package var cut: Int
    package var startedAt: String
    /// Expected time of the last notification; every pause delays it.
    package var lastToldAt: String?
    /// Connections still open at this time are reset.
    package var deadlineAt: String?
    /// Connections whose notification is due at the deadline or later: they are reset without notice.
    package var untold: Int
    /// Says that some connections are reset without notice, and what to do about it.
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

/// Selects connections, and says how to close them.
package struct BulkRequest: Codable, Sendable, Equatable, StrictDecodable {
    /// The filters of the list: `{"route": "echo", "label": "team:blue", "minAgeMs": 60000}`. Several values of one
    /// filter are a list, or a text with commas.
    package var selector: [String: JSONValue]?
    /// Must be true if the selector is empty, which selects every connection.
    package var all: Bool?
    /// Counts the selected connections without closing them.
    package var preview: Bool?
    /// Close code sent to WebSockets. Default: 1000; of a drain, 1001.
    package var code: Int?
    package var reason: String?
    /// Resets the connections.
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
    /// Selected connections.
    package var matched: Int
    /// Notified connections; 0 in a preview.
    package var told: Int
    /// In a preview of a drain: from its start to the last notification, in milliseconds.
    package var takesMs: Int?
    /// In a preview of a drain: says that the deadline is too early, and what to do about it.
    package var warning: String?

    package init(matched: Int, told: Int) {
        self.matched = matched
        self.told = told
    }
}
