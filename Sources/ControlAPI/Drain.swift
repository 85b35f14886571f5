/// A drain: connections are asked to close, one after another.
package struct Drain: ControlModel {
    @Member package var id = ""
    @Member("Of a cluster: the node whose connections are closed.") package var node: String?
    @Member(.words(["running", "paused", "cancelled", "ended"])) package var state = ""
    @Member("Connections selected at the start.") package var total = 0
    @Member("Connections that were notified, or closed before that.") package var notified = 0
    @Member("Selected connections that are still open.") package var remaining = 0
    @Member("Connections reset at the deadline.") package var cut = 0
    @Member(.time()) package var startedAt = ""
    @Member(.time("Expected time of the last notification; every pause delays it.")) package var lastNotifiedAt: String?
    @Member(.time("Connections still open at this time are reset.")) package var deadlineAt: String?
    @Member("Connections whose notification is due at the deadline or later: they are reset without notice.")
    package var unnotified = 0
    @Member("Warns that some connections will be reset without a graceful close, and suggests a change.")
    package var warning: String?
    @Member(.time()) package var endedAt: String?

    package init() {}
}

/// Drains that one request started on several nodes of a cluster.
package struct DrainList: ControlModel {
    @Member("In the order of the nodes' names.") package var items: [Drain] = []
    @Member("Names of nodes of the cluster on which no drain was started; missing if there are none.")
    package var unreachable: [String]?

    package init() {}
}

/// Selects connections, and says how to close them.
package struct BulkRequest: StrictDecodable {
    @Member(
        "The filters of listConnections by name; several values as an array or with commas, labels also as an object.")
    package var selector: [String: JSONValue]?
    @Member("Must be true if the selector is empty, which selects every connection.") package var all: Bool?
    @Member("Counts the selected connections without closing them.") package var preview: Bool?
    @Member("Close code sent to WebSockets. Default: 1000; of a drain, 1001.") package var code: Int?
    @Member(.text(limit: 123)) package var reason: String?
    @Member("Resets the connections.") package var abort: Bool?
    @Member("Of a drain in a cluster: names of nodes, whose connections it closes at once; `*` is every node.")
    package var nodes: [String]?
    @Member("Of a drain: connections notified per second, 0.001 to 100 000. Default: 100.")
    package var ratePerSecond: Double?
    @Member(.milliseconds(0...3_600_000, "Of a drain: upper bound of the random delay of each notification."))
    package var jitterMs: Double?
    @Member(.milliseconds(0...86_400_000, "Of a drain: connections still open after this time are reset."))
    package var deadlineMs: Double?

    package init() {}
}

/// Result of a bulk operation.
package struct BulkAnswer: ControlModel {
    @Member("Selected connections.") package var matched = 0
    @Member("Notified connections; 0 in a preview.") package var notified = 0
    @Member("In a preview of a drain: from its start to the last notification, in milliseconds.")
    package var takesMs: Int?
    @Member("In a preview of a drain: warns that the deadline is too early, and suggests a change.")
    package var warning: String?
    @Member("Names of nodes of the cluster that did not answer; missing if all did.") package var unreachable: [String]?

    package init() {}
}
