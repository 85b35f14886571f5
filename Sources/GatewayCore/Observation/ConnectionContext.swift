import SessionTasks
import StreamTransport

/// Identity of a connection, from its acceptance to its last log line.
struct ConnectionContext: Sendable {
    /// Properties that few connections have.
    private struct Rare: Sendable {
        var client: SocketAddress?
        var destination: SocketAddress?
    }

    /// Unique in the process, from 1 up; appears in both log lines and in the REST interface.
    let identifier: UInt64
    let listener: String
    /// Remote address of the accepted connection.
    let peer: SocketAddress
    let acceptedAt: MonotonicInstant
    var route: String?
    /// The URL of the endpoint that the tunnel leads to.
    var upstream: String?
    /// The upstream that it is an endpoint of.
    var upstreamPlan: UpstreamPlan?
    private var rare: Apart<Rare>?

    init(identifier: UInt64, listener: String, peer: SocketAddress, acceptedAt: MonotonicInstant) {
        self.identifier = identifier
        self.listener = listener
        self.peer = peer
        self.acceptedAt = acceptedAt
    }

    /// The client: the peer, or the source of a trusted PROXY header.
    var client: SocketAddress {
        get { self.rare?.value.client ?? self.peer }
        set { self.changeRare { $0.client = newValue } }
    }

    /// Where the client connected to: by the PROXY header if there was one, else our own address, looked up only where
    /// it is passed on.
    var destination: SocketAddress? {
        get { self.rare?.value.destination }
        set { self.changeRare { $0.destination = newValue } }
    }

    private mutating func changeRare(_ change: (inout Rare) -> Void) {
        var rare = self.rare?.value ?? Rare()
        change(&rare)
        self.rare = .value(rare)
    }
}
