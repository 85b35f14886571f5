/// Keys of `control`.
package enum ControlKey: String, CaseIterable, Sendable {
    case address
    case mode
    case closedConnections = "closed-connections"
    case keepHandshakes = "keep-handshakes"
    case transfers
}
