import SessionTasks
import StreamTransport

/// What was opened by command: a connection, or a tunnel between two.
protocol OrderedConnection: LiveConnection {
    /// What was asked for; of a tunnel, downstream.
    var url: String { get }
    /// Of a tunnel, what was asked for upstream.
    var upstreamURL: String? { get }
    /// When payload could flow; `nil` before.
    var openedAt: MonotonicInstant? { get }
    /// What its tasks have counted.
    var records: [TaskRecord] { get }
}

extension OrderedConnection {
    var key: ConnectionKey { ConnectionKey(self.identifier) }
    var routeName: String? { nil }
}

extension GatewayEvent {
    init(_ kind: Kind, of connection: any OrderedConnection) {
        self.init(kind)
        self.connection = connection.key
        self.url = connection.url
        self.upstream = connection.upstreamURL
    }
}
