/// The control plane: where it listens and what it remembers.
package struct ControlSettings: Sendable, Equatable {
    /// Where the REST interface listens.
    package enum Address: Sendable, Equatable {
        /// Port 0 lets the system pick a free one, which is then printed.
        case tcp(IPAddress, port: UInt16)
        /// A socket file, made with the permission bits `mode`.
        case unix(path: String, mode: UInt32)
    }

    package static let standardPort: UInt16 = 8081

    /// `nil`: there is none.
    package var address: Address? = .tcp(.loopback, port: Self.standardPort)
    /// Whether the address was asked for: the default one is given up with a warning where it is taken.
    package var isExplicit = false
    /// Connections remembered after their end, 0 to 100 000.
    package var closedConnections = 1000
    /// Whether opening handshakes of WebSockets are kept to be shown, at about half a KiB a connection.
    package var keepsHandshakes = true
    package var transfers = TransferSettings()

    package init() {}
}
