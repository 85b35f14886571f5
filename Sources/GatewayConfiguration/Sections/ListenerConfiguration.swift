/// A bound address with its settings.
package struct ListenerConfiguration: Sendable, Equatable {
    package var name: String
    package var address: ListenAddress
    package var kind: ListenerKind
    /// Whether plain connections are accepted besides TLS.
    package var acceptsPlain = false
    /// Present if and only if `kind` uses TLS.
    package var tls: ServerTLSSettings?
    /// Route of all connections. Present if and only if the kind has no requests: `tcp`, `tls`, `unix`.
    package var route: String?
    package var proxyProtocol = ProxyProtocolAcceptance()
    package var trustedForwarders: [AddressBlock] = AddressBlock.loopback
    package var limits = ListenerLimits()
    package var keepAlive = KeepAliveSettings()
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

extension ListenAddress {
    /// The control plane's address.
    package init(_ address: ControlSettings.Address) {
        switch address {
        case .tcp(let address, let port): self = .tcp(address, port: port)
        case .unix(let path, let mode): self = .unix(path: path, mode: mode)
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
    /// Clients that may connect; empty allows all.
    package var allowedClients: [AddressBlock] = []
    /// Clients that may not, even if they are in `allowedClients`.
    package var deniedClients: [AddressBlock] = []
    package var maximumConnections = 32_768
    package var maximumConnectionsPerClient = 16_384
    package var acceptRate = AcceptRate()
    package var handshakeTimeout: Duration = .seconds(10)
    /// TLS handshakes at a time.
    package var maximumHandshakes = 1024
    /// Bytes from a client before its TLS handshake completes.
    package var maximumHandshakeSize = 64 * 1024
    /// Bytes of the request head of an opening handshake.
    package var maximumHeaderSize = 16 * 1024
    /// Header fields of an opening handshake.
    package var maximumHeaderCount = 100

    /// The accept rate per second; setting it sets the burst too.
    fileprivate var rate: Int {
        get { self.acceptRate.perSecond }
        set { self.acceptRate = AcceptRate(perSecond: newValue, burst: newValue) }
    }

    static let keys: [SettingsKey<ListenerLimits>] = [
        .list(
            "allow-clients", \.allowedClients, .addressBlock, default: "all", example: "[192.0.2.0/24, 2001:db8::/32]",
            """
            Addresses of clients that may connect, at least one. Requests of others in plaintext get 403, before their \
            route is looked for; their raw connections, and those that begin TLS, are reset before a handshake. A client on a Unix socket counts as loopback; a trusted \
            PROXY header names the client.
            """),
        .list(
            "deny-clients", \.deniedClients, .addressBlock, default: "none", example: "[192.0.2.7]",
            "Addresses of clients that may not connect, even if `allow-clients` has them."),
        .value(
            "max-connections", \.maximumConnections, .integer(1...10_000_000),
            """
            Limit of open connections of this listener. Above it WebSocket requests get 503 and raw connections are \
            reset.
            """
        ),
        .value(
            "max-connections-per-client", \.maximumConnectionsPerClient, .integer(1...10_000_000), example: "50",
            """
            Limit of open connections of one client address; an IPv6 client counts by its /64. Above it WebSocket \
            requests get 429 and raw connections are reset. Lower it on listeners for the public.
            """),
        .value(
            "accept-rate", \.rate, .rate(1...10_000_000),
            """
            Connections accepted per second on average. Above it WebSocket requests get 503 and raw connections are \
            reset.
            """
        ),
        .value(
            "accept-burst", \.acceptRate.burst, .integer(1...10_000_000), default: "the number of `accept-rate`",
            example: "1000", "Connections that are accepted at once before `accept-rate` limits them."),
        .value(
            "handshake-timeout", \.handshakeTimeout, .duration(.milliseconds(100) ... .seconds(600)),
            """
            Timeout for the PROXY header, TLS handshake and opening handshake of a client together. At its end the \
            connection is closed.
            """),
        .value(
            "max-tls-handshakes", \.maximumHandshakes, .integer(1...1_000_000),
            """
            Concurrent TLS handshakes of all clients; each takes about 55 KiB. Further connections are queued within \
            `handshake-timeout`; while any is queued, a handshake that takes more than 2 s is reset.
            """),
        .value(
            "max-tls-handshake-size", \.maximumHandshakeSize, .size(4096...1_048_576),
            """
            Bytes that a client may send before its TLS handshake completes, its certificates included. Above it the \
            connection is reset, with the termination reason `tls`.
            """),
        .value(
            "max-header-size", \.maximumHeaderSize, .size(1024...1_048_576),
            "Size of the request head of an opening handshake, with its empty line. Above it 431."),
        .value(
            "max-header-count", \.maximumHeaderCount, .integer(8...10_000),
            "Number of header fields of an opening handshake. Above it 431."),
    ]
}

/// A token bucket: each accepted connection takes a token; without a token it is refused.
package struct AcceptRate: Sendable, Equatable {
    /// Tokens added per second.
    package var perSecond = 50_000
    /// Size of the bucket.
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

    static let keys: [SettingsKey<ProxyProtocolAcceptance>] = [
        .value(
            "proxy-protocol", \.mode, .choice,
            """
            Whether connections may begin with a PROXY protocol header, version 1 or 2, of at most 4096 bytes, that \
            names the client. `accept` uses the header of a trusted peer and treats all other bytes as data; a trusted \
            peer that sends nothing for `handshake-timeout` is reset. `require` resets connections without a header or \
            from another peer.
            """),
        .list(
            "proxy-protocol-trusted", \.trusted, .addressBlock, example: "[10.0.0.0/24]",
            "Peers whose PROXY protocol header is trusted. Peers on a Unix socket count as loopback."),
    ]
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
    /// Range of the kernel for `idle` and `interval`.
    package static let probing: ClosedRange<Duration> = .seconds(1) ... .seconds(32_400)
    package static let probeCounts = 1...127
    package static let userTimeouts: ClosedRange<Duration> = .seconds(1) ... .seconds(86_400)

    /// `nil` sends no probes.
    package var idle: Duration? = .seconds(60)
    package var interval: Duration = .seconds(15)
    package var probes = 4
    /// `nil` is the kernel's default.
    package var userTimeout: Duration? = .seconds(300)

    package init() {}

    /// Keys of a listener or a route.
    static let socketKeys: [SettingsKey<KeepAliveSettings>] = [
        .section(
            "keep-alive", \.self, example: "{idle: 30s, interval: 5s, probes: 3}",
            """
            TCP keep-alive: how the kernel detects that the peer of an idle connection is dead, which takes `idle` and \
            `probes` times `interval`. No effect on Unix sockets.
            """),
        .orNone(
            "user-timeout", \.userTimeout, .duration(Self.userTimeouts),
            """
            How long sent bytes may stay unacknowledged, or the peer's window closed (`TCP_USER_TIMEOUT`); then the \
            connection ends. In effect only while there are such bytes: a dead peer of an idle connection is detected \
            by `keep-alive`. `none` is the kernel's default of about 15 minutes.
            """),
    ]
}

extension KeepAliveSettings: SettingsSection {
    static let sectionName = "KeepAlive"
    static let initial = KeepAliveSettings()
    static let keys: [SettingsKey<KeepAliveSettings>] = [
        .orNone(
            "idle", \.idle, .duration(Self.probing),
            "Idle time before the first probe (`TCP_KEEPIDLE`). `none` sends no probes."),
        .value("interval", \.interval, .duration(Self.probing), "Interval of probes (`TCP_KEEPINTVL`)."),
        .value(
            "probes", \.probes, .integer(Self.probeCounts),
            "Number of unanswered probes after which the connection counts as dead (`TCP_KEEPCNT`)."),
    ]
}

/// Keys of an entry of `listeners`.
package typealias ListenerKey = SettingsKeyName<ListenerConfiguration>

extension ListenerKey {
    package static var listen: Self { "listen" }
    fileprivate static var mode: Self { "mode" }
    fileprivate static var plainAndTLS: Self { "plain-and-tls" }
    package static var tls: Self { "tls" }
    package static var route: Self { "route" }
}

extension ListenerConfiguration: SettingsSection {
    static let sectionName = "Listener"
    static let initial = ListenerConfiguration(name: "", address: .tcp(.loopback, port: 0), kind: .tcp)
    static let keys: [SettingsKey<ListenerConfiguration>] =
        Self.addressKeys + SettingsKey.group(ProxyProtocolAcceptance.keys, \.proxyProtocol) + Self.forwardingKeys
        + SettingsKey.group(ListenerLimits.keys, \.limits)
        + SettingsKey.group(KeepAliveSettings.socketKeys, \.keepAlive)
        + Self.queueKeys

    private static let addressKeys: [SettingsKey<ListenerConfiguration>] = [
        .required(
            "name", \.name, .name,
            """
            Name in routes, logs and metrics, unique among listeners. A reload takes a listener of another name for \
            another listener.
            """),
        .custom(
            .listen, .value(ValueSyntax.listenURL), isRequired: true,
            "Address and protocol. Two listeners that would accept the same connections are refused."
        ) { section, settings in
            section.require(.listen)
            guard let url = section.value(.listen, as: .listenURL) else { return }
            settings.address = url.address
            settings.kind = url.kind
        },
        .custom(
            .mode, .value(ValueSyntax.permissions), default: "`0660`",
            "Permission bits of the file of a Unix socket; refused for other addresses."
        ) { section, settings in settings.readMode(section) },
        .value(
            .plainAndTLS, \.acceptsPlain, .boolean,
            """
            Accepts plain connections on the same port, distinguished from TLS by their first byte (22 begins a TLS \
            handshake), and handles them as `tcp` or `ws`. Only for `tls` and `wss`. A connection that sends nothing for \
            `handshake-timeout` is reset.
            """),
        .section(
            .tls, optional: \.tls, example: "{certificate: cert.pem, key: key.pem}",
            """
            Certificates and other settings of TLS. Required for `tls` and `wss`, refused for other addresses. Files \
            are checked at start and by `sluice check`; a reload with invalid files keeps the old ones.
            """),
        .optional(
            .route, \.route, .name, example: "broker",
            """
            Route of all connections. Required for `tcp`, `tls` and `unix`, refused for `ws` and `wss`. As there is no \
            path, a route whose target has `{parameters}` is refused.
            """),
    ]

    private static let forwardingKeys: [SettingsKey<ListenerConfiguration>] = [
        .list(
            "forwarding-trusted", \.trustedForwarders, .addressBlock, example: "[10.0.0.0/8]",
            """
            Peers whose `Forwarded` and `X-Forwarded-*` fields are extended towards WebSocket upstreams, the first from \
            the others if it is missing or malformed; the fields of others are replaced. `rooms.user-header` counts in \
            their requests alone. With a PROXY header, the client that it names counts as the peer. A peer on a Unix \
            socket counts as 127.0.0.1.
            """)
    ]

    private static let queueKeys: [SettingsKey<ListenerConfiguration>] = [
        .value(
            "backlog", \.backlog, .integer(1...65_535),
            """
            Connections that the kernel queues until they are accepted (`listen(2)`); it caps the number at \
            net.core.somaxconn. If the queue is full, clients retry. A listener that stays open at a reload keeps its \
            backlog.
            """)
    ]

    private mutating func readMode(_ section: SectionReader<ListenerConfiguration>) {
        guard section.has(.mode) else { return }
        guard case .unix(let path, let defaultMode) = self.address else {
            guard section.problems.isValid(section.path(.listen)) else { return }
            section.add(.mode, expected: "no mode, as only a Unix socket has one", remedy: "leave it out")
            return
        }
        self.address = .unix(path: path, mode: section.value(.mode, as: .permissions) ?? defaultMode)
    }

    mutating func check(_ section: SectionReader<ListenerConfiguration>) {
        let url = section.isSet(.listen) ? section.value(.listen, as: .listenURL) : nil
        let isPlain = url?.kind.speaksTLS != true
        if let url { self.check(url, in: section) }
        if isPlain { self.tls = nil }
        section.rejectEmptyList(
            "allow-clients", expected: "at least one block of addresses", remedy: "leave it out to allow all clients")
    }

    /// Checks settings that the listener's kind requires or excludes.
    private func check(_ url: ListenURL, in section: SectionReader<ListenerConfiguration>) {
        let kind = url.kind
        if !url.resource.isEmpty {
            section.add(.listen, expected: "an address without a path", remedy: "move the path to a route")
        }
        if kind.speaksTLS, !section.has(.tls) {
            section.add(
                .tls, expected: "a certificate for \(kind.rawValue)://", found: "none",
                remedy: "give the listener a certificate and its key")
        }
        if !kind.speaksTLS {
            for (key, isPresent) in [(ListenerKey.tls, section.has(.tls)), (.plainAndTLS, self.acceptsPlain)]
            where isPresent {
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
