/// How the nodes of a cluster find and ask each other.
package protocol ClusterBus: Sendable {
    /// Name of this node, unique in the cluster.
    var nodeName: String { get }

    /// Nodes whose lease is valid, in the order of their names. This node is always among them.
    func nodes() async throws(ClusterError) -> [NodeRecord]

    /// Sends a message to a node and waits for its answer.
    ///
    /// Cancelling the awaiting Swift task ends the call with `timeout`. Then, and at the timeout, the handler's task on the
    /// node is cancelled, unless the message that says so is lost.
    /// - Parameter timeout: after it, the call fails with `timeout`; the node may still have acted.
    func call(_ node: String, _ message: [UInt8], timeout: Duration) async throws(ClusterError) -> [UInt8]

    /// Sends a message to all other nodes. Nodes that cannot be reached at the moment miss it.
    func announce(_ message: [UInt8]) async throws(ClusterError)

    /// Keeps values for all nodes, also for those that start later.
    /// - Parameters:
    ///   - now: milliseconds since 1970.
    ///   - latest: a greater version is never the one that is kept.
    ///   - limit: number of values from which on no further one is kept.
    func keep(_ values: [KeptValue], now: Int64, latest: Int64, limit: Int) async throws(ClusterError)

    /// - Returns: the bytes of the values that are kept, some of which may have ended; at most about `limit`.
    func kept(limit: Int) async throws(ClusterError) -> [[UInt8]]

    /// Sets what answers the messages of other nodes. Until then, calls to this node end with their timeout.
    /// - Parameters:
    ///   - reached: called each time that the server which connects the nodes is reached.
    ///   - handler: returns the answer to a call; what it returns for an announcement is dropped.
    func serve(
        reached: @escaping @Sendable () -> Void, _ handler: @escaping @Sendable (ClusterMessage) async -> [UInt8])
}

/// A message of another node.
package struct ClusterMessage: Sendable, Equatable {
    /// Name of the node that sent it.
    package let sender: String
    package let isAnnouncement: Bool
    package let bytes: [UInt8]

    package init(sender: String, isAnnouncement: Bool, bytes: [UInt8]) {
        self.sender = sender
        self.isAnnouncement = isAnnouncement
        self.bytes = bytes
    }
}

/// Why nodes could not be asked.
package enum ClusterError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The server that connects the nodes cannot be reached.
    case away
    /// The server refused the command, with these words.
    case refused(String)
    /// No node of this name has a valid lease.
    case unknownNode(String)
    case timeout(node: String)
    /// The message, or the answer, is longer than nodes exchange.
    case tooLarge(limit: Int)
    /// Too many calls are unanswered.
    case busy

    package var description: String {
        switch self {
        case .away: "Redis cannot be reached"
        case .refused(let words): "Redis refused a command: \(words)"
        case .unknownNode(let name): "there is no node named \(name)"
        case .timeout(let node): "the node \(node) did not answer in time"
        case .tooLarge(let limit): "the message is longer than \(limit) bytes"
        case .busy: "too many calls to other nodes are unanswered"
        }
    }
}

/// A node's record about itself.
package struct NodeRecord: Sendable, Equatable {
    package var name: String
    /// Another one each time that the node starts.
    package var instance: String
    package var version: String
    /// Milliseconds since 1970, by the node's own clock.
    package var startTime: Int64
    package var load = NodeLoad()
    /// The node's clock minus that of Redis; `nil` if it was not measured.
    package var clockDifference: Duration?
    /// Until the node counts as gone, unless it renews its lease.
    package var remainingLease: Duration

    package init(name: String, instance: String, version: String, startTime: Int64, remainingLease: Duration) {
        self.name = name
        self.instance = instance
        self.version = version
        self.startTime = startTime
        self.remainingLease = remainingLease
    }
}

/// Load of a node.
package struct NodeLoad: Sendable, Equatable {
    package var connections = 0
    /// Rooms with members on the node.
    package var rooms = 0
    /// Clients of the rooms' protocol.
    package var clients = 0
    /// Share of one core that the process used since the last report, from 0 on.
    package var processorShare = 0.0
    package var isDraining = false

    package init() {}
}
