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
