/// A bound address with its settings.
package struct ListenerConfiguration: Sendable, Equatable {
    /// Unique among listeners: letters, digits, `-`, `_`, `.`; 1 to 64 of them.
    package var name: String
    package var address: ListenAddress
    package var kind: ListenerKind
    /// Whether plain connections are accepted on the same port, told from TLS by their first byte. Only for the kinds
    /// `tls` and `wss`; a plain connection is then handled as `tcp` or `ws`.
    package var acceptsPlain = false
    /// Present if and only if `kind` uses TLS.
    package var tls: ServerTLSSettings?
    /// Route of all connections. Present if and only if the kind has no requests: `tcp`, `tls`, `unix`.
    package var route: String?
    package var proxyProtocol = ProxyProtocolAcceptance()
    /// Peers whose `Forwarded` and `X-Forwarded-*` fields are trusted and extended; those of others are replaced.
    package var trustedForwarders: [AddressBlock] = AddressBlock.loopback
    package var limits = ListenerLimits()
    package var keepAlive = KeepAliveSettings()
    /// Backlog of `listen(2)`, 1 to 65 535; the kernel caps it at net.core.somaxconn.
    package var backlog = 4096

    package init(name: String, address: ListenAddress, kind: ListenerKind) {
        self.name = name
        self.address = address
        self.kind = kind
    }
}

/// Protocol of a listener's connections.
package enum ListenerKind: String, Sendable, Equatable, CaseIterable {
    /// A plain byte stream over TCP (or an adopted socket).
    case tcp
    /// A byte stream inside TLS.
    case tls
    /// WebSocket requests without TLS.
    case ws
    /// WebSocket requests inside TLS.
    case wss
    /// A plain byte stream over a Unix socket.
    case unix

    package var speaksWebSocket: Bool {
        switch self {
        case .ws, .wss: true
        case .tcp, .tls, .unix: false
        }
    }

    package var speaksTLS: Bool {
        switch self {
        case .tls, .wss: true
        case .tcp, .ws, .unix: false
        }
    }
}

/// The address on which a listener accepts connections.
package enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    /// For port 0 the kernel assigns a free port, which is printed and logged.
    case tcp(IPAddress, port: UInt16)
    /// All addresses of both families on one port, written `*`.
    case tcpAny(port: UInt16)
    /// A socket file with the permission bits `mode`; the path has at most 107 bytes.
    case unix(path: String, mode: UInt32)
    /// A socket passed by the service manager (`LISTEN_FDS`).
    case adopted(AdoptedSocket)

    package var description: String {
        switch self {
        case .tcp(.v6(let high, let low), let port): "[\(IPAddress.v6(high: high, low: low))]:\(port)"
        case .tcp(let address, let port): "\(address):\(port)"
        case .tcpAny(let port): "*:\(port)"
        case .unix(let path, _): path
        case .adopted(let socket): "systemd:\(socket)"
        }
    }

    /// Whether one socket can serve both addresses. The mode of a Unix socket makes no difference.
    package func sharesSocket(with other: ListenAddress) -> Bool {
        if case .unix(let path, _) = self, case .unix(let otherPath, _) = other { return path == otherPath }
        return self == other
    }

    /// The address with port 0 replaced by the port that the kernel assigned.
    package func resolvingPort(_ port: UInt16) -> ListenAddress {
        switch self {
        case .tcp(let address, 0): .tcp(address, port: port)
        case .tcpAny(0): .tcpAny(port: port)
        case .tcp, .tcpAny, .unix, .adopted: self
        }
    }

    /// Whether both accept the same connections. Port 0 overlaps nothing, as each listener gets its own port.
    package func overlaps(_ other: ListenAddress) -> Bool {
        switch (self, other) {
        case (.unix(let path, _), .unix(let otherPath, _)): path == otherPath
        case (.adopted(let socket), .adopted(let otherSocket)): socket == otherSocket
        case (.tcpAny(let port), .tcp(_, let otherPort)), (.tcp(_, let port), .tcpAny(let otherPort)),
            (.tcpAny(let port), .tcpAny(let otherPort)):
            port != 0 && port == otherPort
        case (.tcp(let address, let port), .tcp(let otherAddress, let otherPort)):
            port != 0 && port == otherPort && address.bitWidth == otherAddress.bitWidth
                && (address == otherAddress || address.isUnspecified || otherAddress.isUnspecified)
        case (.unix, _), (.adopted, _), (.tcp, _), (.tcpAny, _): false
        }
    }
}

extension IPAddress {
    /// 0.0.0.0 or ::, which stand for all addresses of their family.
    fileprivate var isUnspecified: Bool { self == .v4(0) || self == .v6(high: 0, low: 0) }
}

/// Selects one of the sockets passed by the service manager.
package enum AdoptedSocket: Sendable, Hashable, CustomStringConvertible {
    /// By its `FileDescriptorName=` (from `LISTEN_FDNAMES`).
    case name(String)
    /// By its index; 0 is descriptor 3.
    case index(Int)

    package var description: String {
        switch self {
        case .name(let name): name
        case .index(let index): String(index)
        }
    }
}

/// Limits of a listener. Each refusal is counted.
package struct ListenerLimits: Sendable, Equatable {
    /// Open connections of this listener; above it 503, or a reset for raw kinds. 1 to 10 000 000.
    package var maximumConnections = 32_768
    /// Open connections of one client address (an IPv6 client counts by its /64); above it 429, or a reset. 1 to 10
    /// 000 000.
    package var maximumConnectionsPerClient = 16_384
    package var acceptRate = AcceptRate()
    /// For the PROXY header, the TLS handshake and the opening handshake together, 100 ms to 10 min.
    package var handshakeTimeout: Duration = .seconds(10)
    /// Concurrent TLS handshakes of all clients; more are queued. 1 to 1 000 000.
    package var maximumHandshakes = 1024
    /// Bytes from a client before its TLS handshake completes; above it the connection is closed. 4 KiB to 1 MiB.
    package var maximumHandshakeSize = 64 * 1024
    /// Bytes of the request head of an opening handshake; above it 431. 1 KiB to 1 MiB.
    package var maximumHeaderSize = 16 * 1024
    /// Header fields of an opening handshake; above it 431. 8 to 10 000.
    package var maximumHeaderCount = 100

    package init() {}
}

/// A token bucket: each accepted connection takes a token; without a token it is refused.
package struct AcceptRate: Sendable, Equatable {
    /// Tokens added per second, 1 to 10 000 000.
    package var perSecond = 50_000
    /// Size of the bucket, 1 to 10 000 000.
    package var burst = 50_000

    package init() {}

    package init(perSecond: Int, burst: Int) {
        self.perSecond = perSecond
        self.burst = burst
    }
}

/// Whether connections of a listener may begin with a PROXY protocol header, version 1 or 2.
package struct ProxyProtocolAcceptance: Sendable, Equatable {
    package enum Mode: String, Sendable, Equatable, CaseIterable {
        /// A header is treated as data.
        case off
        /// A header from a trusted peer names the client; without a header the peer is the client. From other peers a
        /// header is treated as data.
        case accept
        /// Connections without a header, or from a peer that is not trusted, are reset.
        case require
    }

    package var mode = Mode.off
    /// Peers whose header is trusted.
    package var trusted: [AddressBlock] = AddressBlock.loopback

    package init() {}
}

/// Version of a PROXY protocol header.
package enum ProxyProtocolVersion: String, Sendable, Equatable, CaseIterable {
    /// A line of text.
    case v1
    /// Binary.
    case v2
}

/// TCP keep-alive: how the kernel detects dead peers. No effect on Unix sockets.
package struct KeepAliveSettings: Sendable, Equatable {
    /// Idle time before the first probe (`TCP_KEEPIDLE`), 1 s to 9 h; `nil` sends no probes.
    package var idle: Duration? = .seconds(60)
    /// Interval of probes (`TCP_KEEPINTVL`), 1 s to 9 h.
    package var interval: Duration = .seconds(15)
    /// Unanswered probes after which the connection is dead (`TCP_KEEPCNT`), 1 to 127.
    package var probes = 4
    /// How long sent bytes may stay unacknowledged, or the peer's window closed (`TCP_USER_TIMEOUT`), 1 s to 1 day;
    /// `nil` is the kernel's default of about 15 minutes.
    package var userTimeout: Duration? = .seconds(300)

    package init() {}
}

/// Keys of an entry of `listeners`.
package enum ListenerKey: String, CaseIterable, Sendable {
    case name
    case listen
    case mode
    case plainAndTLS = "plain-and-tls"
    case tls
    case route
    case proxyProtocol = "proxy-protocol"
    case proxyProtocolTrusted = "proxy-protocol-trusted"
    case forwardingTrusted = "forwarding-trusted"
    case maxConnections = "max-connections"
    case maxConnectionsPerClient = "max-connections-per-client"
    case acceptRate = "accept-rate"
    case acceptBurst = "accept-burst"
    case handshakeTimeout = "handshake-timeout"
    case maxTLSHandshakes = "max-tls-handshakes"
    case maxTLSHandshakeSize = "max-tls-handshake-size"
    case maxHeaderSize = "max-header-size"
    case maxHeaderCount = "max-header-count"
    case keepAlive = "keep-alive"
    case userTimeout = "user-timeout"
    case backlog
}

/// Keys of `keep-alive`.
package enum KeepAliveKey: String, CaseIterable, Sendable {
    case idle
    case interval
    case probes
}

extension ListenerConfiguration {
    init(reading section: SectionReader<ListenerKey>) {
        let name = section.required(.name, as: .name)
        let url = section.required(.listen, as: .listenURL)
        self.init(
            name: name ?? "", address: url?.address ?? .tcp(.loopback, port: 0), kind: url?.kind ?? .tcp)
        section.read(.plainAndTLS, into: &self.acceptsPlain, as: .boolean)
        section.readOptional(.route, into: &self.route, as: .name)
        section.read(.proxyProtocol, into: &self.proxyProtocol.mode, as: .choice)
        section.readList(.proxyProtocolTrusted, into: &self.proxyProtocol.trusted, as: .addressBlock)
        section.readList(.forwardingTrusted, into: &self.trustedForwarders, as: .addressBlock)
        section.read(.backlog, into: &self.backlog, as: .integer(1...65_535))
        self.limits = ListenerLimits(reading: section)
        self.keepAlive = KeepAliveSettings(reading: section.section(.keepAlive))
        section.readOptionalOrNone(
            .userTimeout, into: &self.keepAlive.userTimeout, as: .duration(.seconds(1) ... .seconds(86_400)))
        let tls = section.section(.tls, keys: ServerTLSKey.self).map { ServerTLSSettings(reading: $0) }
        self.readMode(section)
        guard let url else { return }
        self.tls = url.kind.speaksTLS ? tls : nil
        Self.check(url, in: section)
    }

    private mutating func readMode(_ section: SectionReader<ListenerKey>) {
        section.declare(.mode, as: .permissions)
        guard section.has(.mode) else { return }
        guard case .unix(let path, let defaultMode) = self.address else {
            guard section.problems.isValid(section.path(.listen)) else { return }
            section.add(.mode, expected: "no mode, as only a Unix socket has one", remedy: "leave it out")
            return
        }
        self.address = .unix(path: path, mode: section.value(.mode, as: .permissions) ?? defaultMode)
    }

    /// Checks settings that the listener's kind requires or excludes.
    private static func check(_ url: ListenURL, in section: SectionReader<ListenerKey>) {
        let kind = url.kind
        if !url.resource.isEmpty {
            section.add(.listen, expected: "an address without a path", remedy: "give the path to a route")
        }
        if kind.speaksTLS, !section.has(.tls) {
            section.add(
                .tls, expected: "a certificate for \(kind.rawValue)://", found: "none",
                remedy: "give the listener a certificate and its key")
        }
        if !kind.speaksTLS {
            for key in [ListenerKey.tls, .plainAndTLS]
            where section.has(key) && section.value(.plainAndTLS, as: .boolean) != false {
                section.add(
                    key, expected: "no \(key.rawValue) on a \(kind.rawValue) listener",
                    remedy: "listen with \(kind.speaksWebSocket ? "wss" : "tls")://, or leave it out")
            }
        }
        if kind.speaksWebSocket, section.has(.route) {
            section.add(
                .route,
                expected: "no route on a \(kind.rawValue) listener, as its requests are routed by host and path",
                remedy: "add a path to the route, and listeners to limit it to this listener")
        } else if !kind.speaksWebSocket, !section.has(.route) {
            section.add(
                .route, expected: "the route that connections of a \(kind.rawValue) listener take", found: "nothing",
                remedy: "add route: NAME")
        }
    }
}

extension ListenerLimits {
    init(reading section: SectionReader<ListenerKey>) {
        self.init()
        section.read(.maxConnections, into: &self.maximumConnections, as: .integer(1...10_000_000))
        section.read(.maxConnectionsPerClient, into: &self.maximumConnectionsPerClient, as: .integer(1...10_000_000))
        section.read(
            .handshakeTimeout, into: &self.handshakeTimeout, as: .duration(.milliseconds(100) ... .seconds(600)))
        section.read(.maxTLSHandshakes, into: &self.maximumHandshakes, as: .integer(1...1_000_000))
        section.read(.maxTLSHandshakeSize, into: &self.maximumHandshakeSize, as: .size(4096...1_048_576))
        section.read(.maxHeaderSize, into: &self.maximumHeaderSize, as: .size(1024...1_048_576))
        section.read(.maxHeaderCount, into: &self.maximumHeaderCount, as: .integer(8...10_000))
        if let rate = section.value(.acceptRate, as: .rate(1...10_000_000)) {
            self.acceptRate = AcceptRate(perSecond: rate, burst: rate)
        }
        section.read(.acceptBurst, into: &self.acceptRate.burst, as: .integer(1...10_000_000))
    }
}

extension KeepAliveSettings {
    /// - Parameter section: `nil` for the defaults.
    init(reading section: SectionReader<KeepAliveKey>?) {
        self.init()
        guard let section else { return }
        section.readOptionalOrNone(.idle, into: &self.idle, as: .duration(.probing))
        section.read(.interval, into: &self.interval, as: .duration(.probing))
        section.read(.probes, into: &self.probes, as: .integer(1...127))
    }
}
