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
    package static let standardConnections = 512

    /// `nil`: there is none.
    package var address: Address? = .tcp(.loopback, port: Self.standardPort)
    /// Whether the address was asked for: the default one is given up with a warning where it is taken.
    package var isExplicit = false
    /// Connections remembered after their end, 0 to 100 000.
    package var closedConnections = 1000
    /// Whether opening handshakes of WebSockets are kept to be shown, at about half a KiB a connection.
    package var keepsHandshakes = true
    /// TLS of the listener; present where the address is `https://`.
    package var tls: ServerTLSSettings?
    /// Who may do what. Where all three are empty, whoever reaches the listener may do everything, and it is on loopback
    /// or a Unix socket.
    package var tokens: [ControlToken] = []
    package var clients: [ControlClient] = []
    package var peers: [ControlPeer] = []
    /// Names by which requests may ask for the listener, beside addresses in digits and `localhost`.
    package var hosts: [HostPattern] = []
    /// Where connections opened by command may lead; `nil` is as the address asks for.
    package var writtenTargets: TargetRules?
    /// Connections at once, 1 to 100 000; where more come, those that wait for a request give way.
    package var maximumConnections = Self.standardConnections
    /// Connections at once of one address (an IPv6 /64), 1 to 100 000.
    package var maximumConnectionsPerClient = 256
    /// Requests carried out at once, 1 to 10 000; more are answered with 503.
    package var maximumRequests = 256
    /// Requests of each caller a second, 1 to 100 000; more are answered with 429. `nil` is any number.
    package var requestRate: Int?

    package var transfers = TransferSettings()

    /// Whether nobody can reach the listener but from this machine.
    package var isLocal: Bool {
        switch self.address {
        case .tcp(let address, _): address.isLoopback
        case .unix, nil: true
        }
    }

    package var authenticates: Bool { !self.tokens.isEmpty || !self.clients.isEmpty || !self.peers.isEmpty }

    package var targets: TargetRules {
        self.writtenTargets ?? (self.isLocal ? .ofLocalCallers : .ofRemoteCallers)
    }

    package init() {}
}
