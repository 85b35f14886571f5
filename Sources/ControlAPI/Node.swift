/// A node of a cluster: one gateway, by what it says of itself.
package struct Node: ControlModel {
    @Member package var name = ""
    @Member("Whether it is the node that answers.") package var answering = false
    @Member package var version = ""
    @Member(.time("By the node's own clock.")) package var startedAt = ""
    @Member("Open connections.") package var connections = 0
    @Member("Rooms with members on the node.") package var rooms = 0
    @Member("Clients of the rooms' protocol.") package var clients = 0
    @Member("Share of one core that the process used since its last report, from 0 on.")
    package var processorShare: Double = 0
    @Member("Whether it accepts no connections any more.") package var draining = false
    @Member(.milliseconds("Until the node counts as gone, unless it renews its lease.")) package var leaseMs: Double = 0
    @Member("In milliseconds: its clock minus that of the server that connects the nodes; missing if not measured.")
    package var clockDifferenceMs: Double?

    package init() {}
}

/// The nodes of a cluster.
package struct NodeList: ControlModel {
    @Member("In the order of their names.") package var items: [Node] = []

    package init() {}
}

/// POST …:drain: closes all connections of a node gradually.
package struct NodeDrain: StrictDecodable {
    @Member("Close code sent to WebSockets. Default: 1001.") package var code: Int?
    @Member(.text(limit: 123)) package var reason: String?
    @Member("Connections notified per second, 0.001 to 100 000. Default: 100.") package var ratePerSecond: Double?
    @Member(.milliseconds(0...3_600_000, "Upper bound of the random delay of each notification."))
    package var jitterMs: Double?
    @Member(.milliseconds(0...86_400_000, "Connections still open after this time are reset."))
    package var deadlineMs: Double?

    package init() {}
}
