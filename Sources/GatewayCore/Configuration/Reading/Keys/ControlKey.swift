/// Keys of `control`.
package enum ControlKey: String, CaseIterable, Sendable {
    case address
    case mode
    case tls
    case tokens
    case clients
    case peers
    case hosts
    case targets
    case maxConnections = "max-connections"
    case maxConnectionsPerClient = "max-connections-per-client"
    case maxRequests = "max-requests"
    case requestRate = "request-rate"
    case closedConnections = "closed-connections"
    case keepHandshakes = "keep-handshakes"
    case transfers
}
