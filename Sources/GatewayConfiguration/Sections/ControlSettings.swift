/// Settings of the control plane.
package struct ControlSettings: Sendable, Equatable {
    /// Address of the REST interface.
    package enum Address: Sendable, Hashable, CustomStringConvertible {
        /// For port 0 the kernel assigns a free port, which is printed.
        case tcp(IPAddress, port: UInt16)
        /// A socket file with the permission bits `mode`.
        case unix(path: String, mode: UInt32)

        package var description: String {
            switch self {
            case .tcp(let ip, let port): "\(ip.bitWidth == 128 ? "[\(ip)]" : "\(ip)"):\(port)"
            case .unix(let path, _): path
            }
        }

        /// The address with port 0 replaced by the port that the kernel assigned.
        package func resolvingPort(_ port: UInt16) -> Address {
            if case .tcp(let ip, 0) = self { .tcp(ip, port: port) } else { self }
        }
    }

    package static let defaultPort: UInt16 = 8081
    package static let defaultMaximumConnections = 512

    /// `nil` turns the control plane off.
    package var address: Address? = .tcp(.loopback, port: Self.defaultPort)
    /// Whether the address was configured. If the default address is in use, the gateway logs a warning and starts
    /// without a control plane.
    package var isExplicit = false
    package var closedConnections = 1000
    package var keepsHandshakes = true
    /// TLS of the listener; present if the address is `https://`.
    package var tls: ServerTLSSettings?
    /// Callers and their scopes. If all three lists are empty, callers are not authenticated and may do everything; the
    /// listener must then be on loopback or a Unix socket.
    package var tokens: [ControlToken] = []
    package var clients: [ControlClient] = []
    package var peers: [ControlPeer] = []
    package var hosts: [HostPattern] = []
    /// `control.targets`; `nil` is the default, which depends on the address.
    package var configuredTargets: TargetRules?
    package var maximumConnections = Self.defaultMaximumConnections
    package var maximumConnectionsPerClient = 256
    package var maximumRequests = 256
    /// Per second; `nil` is no limit.
    package var requestRate: Int?
    package var transfers = TransferSettings()

    /// Whether the listener is reachable from this machine only.
    package var isLocal: Bool {
        switch self.address {
        case .tcp(let address, _): address.isLoopback
        case .unix, nil: true
        }
    }

    package var authenticates: Bool { !self.tokens.isEmpty || !self.clients.isEmpty || !self.peers.isEmpty }

    package var targets: TargetRules {
        self.configuredTargets ?? (self.isLocal ? .localDefault : .remoteDefault)
    }

    package init() {}
}

/// A caller known by its client certificate.
package struct ControlClient: Sendable, Equatable {
    /// Property of the certificate that identifies the caller.
    package enum Identity: Sendable, Equatable {
        /// The whole subject in the form of RFC 2253: `CN=ops,O=Example`.
        case subject(String)
        /// A subject alternative name: a DNS name, an e-mail address or a URI, compared exactly.
        case alternativeName(String)
        case pin(PublicKeyPin)
    }

    /// Name of the caller in the audit log.
    package var name: String
    package var identity: Identity
    package var scopes: Set<ControlScope>

    package init(name: String, identity: Identity, scopes: Set<ControlScope>) {
        self.name = name
        self.identity = identity
        self.scopes = scopes
    }
}

/// A caller on the control plane's Unix socket, known by its credentials from the kernel (`SO_PEERCRED`).
package struct ControlPeer: Sendable, Equatable {
    /// User ID of the process when it connected; `nil` is any.
    package var user: UInt32?
    /// Effective group ID; `nil` is any.
    package var group: UInt32?
    package var scopes: Set<ControlScope>

    package init(user: UInt32? = nil, group: UInt32? = nil, scopes: Set<ControlScope>) {
        self.user = user
        self.group = group
        self.scopes = scopes
    }
}

/// Permission of a caller of the control plane. None includes another.
package enum ControlScope: String, Sendable, Hashable, CaseIterable {
    /// Reads connections and events.
    case read
    /// Changes connections: opens, sends, closes.
    case operate
    /// Changes listeners, routes and upstreams.
    case configure
    /// Reads `/metrics`.
    case metrics
}

/// A bearer token of the control plane; only its hash is stored.
package struct ControlToken: Sendable, Equatable {
    /// Name of the caller in the audit log.
    package var name: String
    package var hash: TokenHash
    package var scopes: Set<ControlScope>
    /// Milliseconds since 1970-01-01T00:00:00Z; `nil` never expires.
    package var expires: Int64?

    package init(name: String, hash: TokenHash, scopes: Set<ControlScope>, expires: Int64? = nil) {
        self.name = name
        self.hash = hash
        self.scopes = scopes
        self.expires = expires
    }
}

/// The SHA-256 of a token's text. Tokens have 256 random bits, so a salt or a slow hash would not make them safer.
package struct TokenHash: Sendable, Equatable {
    /// 32 bytes.
    package let digest: [UInt8]

    /// - Returns: `nil` unless there are 32 bytes.
    package init?(digest: [UInt8]) {
        guard digest.count == 32 else { return nil }
        self.digest = digest
    }

    private init() { self.digest = [] }

    /// Matches no token. Used for a hash that could not be parsed; the configuration is rejected anyway.
    static let placeholder = TokenHash()

    /// Compares in constant time.
    package func matches(_ other: [UInt8]) -> Bool {
        guard other.count == self.digest.count else { return false }
        return zip(self.digest, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

/// Keys of `control`.
package typealias ControlKey = SettingsKeyName<ControlSettings>

extension ControlKey {
    fileprivate static var address: Self { "address" }
    fileprivate static var mode: Self { "mode" }
    package static var tls: Self { "tls" }
    fileprivate static var tokens: Self { "tokens" }
    fileprivate static var clients: Self { "clients" }
    fileprivate static var peers: Self { "peers" }
    fileprivate static var targets: Self { "targets" }
    package static var transfers: Self { "transfers" }
}

extension ControlSettings: SettingsSection {
    static let sectionName = "Control"
    static let initial = ControlSettings()
    static let keys: [SettingsKey<ControlSettings>] = Self.accessKeys + Self.limitKeys

    private static let accessKeys: [SettingsKey<ControlSettings>] = [
        .custom(
            .address, .value(ValueSyntax.controlURL.orNone),
            default: "`http://\(IPAddress.loopback):\(Self.defaultPort)`",
            example: "http://127.0.0.1:9000", needsRestart: true,
            """
            Address of the REST interface; `none` turns it off. Port 0 selects a free port, which is printed. An \
            address other than loopback requires `tokens` or `clients`. If the default address is in use, the gateway \
            starts without a control plane; if a configured one is, it does not start.
            """
        ) { section, settings in
            settings.isExplicit = section.has(.address)
            guard let url = section.value(.address, as: ValueSyntax<ControlURL>.controlURL.orNone) else { return }
            settings.address = url?.address
        },
        .custom(
            .mode, .value(ValueSyntax.permissions), default: "`0600`", needsRestart: true,
            """
            Permission bits of its Unix socket. Everyone who may write to the socket may do everything, unless there \
            are `peers`.
            """
        ) { section, settings in settings.readMode(section) },
        .section(
            .tls, optional: \.tls, example: "{certificate: control.pem, key: control.key, client-ca: operators.pem}",
            """
            TLS of its listener: the keys of a listener's `tls`. Required for `https://`, refused for other addresses. \
            `client-ca` refuses clients without a certificate, unless `client-auth` is `request`.
            """),
        .sections(
            .tokens, \.tokens,
            example: """
                [{name: ops, hash: "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", scopes: \
                [read]}]
                """,
            """
            Bearer tokens with their scopes; at least one. `sluice token` creates a token and prints its entry. A \
            request without a valid token, client certificate or peer gets 401; `/livez`, `/readyz` and `/startupz` \
            need none.
            """),
        .sections(
            .clients, \.clients, example: #"[{name: ops, subject: "CN=ops,O=Example", scopes: [read, operate]}]"#,
            """
            Callers known by their client certificates, with their scopes; at least one. The certificate must be \
            issued by an authority of `client-ca`. The first entry that matches counts; a bearer token takes \
            precedence.
            """),
        .sections(
            .peers, \.peers, example: "[{uid: 0, scopes: [read, operate, configure]}, {gid: 998, scopes: [read]}]",
            """
            Callers on its Unix socket, known by their user and group, with their scopes; at least one. A process that \
            matches several entries has all their scopes; one that matches none needs a token.
            """),
        .list(
            "hosts", \.hosts, .hostPattern, example: "[control.example.com]",
            """
            Names accepted in the `Host` field, besides IP addresses and `localhost`. Other requests get 421, so that \
            web pages cannot reach it through a name that resolves to its address.
            """),
        .custom(
            .targets, .list(.value(ValueSyntax.targetRule)),
            default: "`[public, loopback]` if `address` is loopback or a Unix socket, else `[public]`",
            example: #"[loopback, "*.example.com:443", "10.0.0.0/8:5432"]"#,
            """
            Permitted targets of connections and transfers that callers open; others get 403. Routes are not affected. \
            `public` is all globally routed addresses, `private` the networks of RFC 1918, RFC 6598 and RFC 4193. A \
            host name permits all addresses that it resolves to, except link-local and reserved ones and those of \
            metadata services, which only a block can permit. Each address is checked when it is tried. An empty list \
            permits nothing.
            """
        ) { section, settings in
            settings.configuredTargets = section.list(.targets, as: .targetRule).map { TargetRules($0) }
        },
    ]

    private static let limitKeys: [SettingsKey<ControlSettings>] = [
        .value(
            "max-connections", \.maximumConnections, .integer(1...100_000),
            """
            Limit of concurrent connections, lowered to an eighth of the descriptors that the process may have. Above \
            it the connection that is idle for longest is closed; if all carry requests, 16 more are accepted for \
            `/livez`, `/readyz` and `/startupz` (503 for others), and others are reset.
            """),
        .value(
            "max-connections-per-client", \.maximumConnectionsPerClient, .integer(1...100_000),
            """
            Limit of concurrent connections of one client address; an IPv6 client counts by its /64. Above it the \
            client's connection that is idle for longest is closed; if all carry requests, the new one is reset. No \
            effect on a Unix socket.
            """),
        .value(
            "max-requests", \.maximumRequests, .integer(1...10_000),
            "Limit of concurrent requests. Above it 503 with `Retry-After`."),
        .orNone(
            "request-rate", \.requestRate, .rate(1...100_000), example: "100/s",
            "Limit of requests per second of each caller. Above it 429 with `Retry-After`."),
        .value(
            "closed-connections", \.closedConnections, .integer(0...100_000), needsRestart: true,
            "Closed connections that stay listed, at about 1 KiB each. Above it the oldest is removed."),
        .value(
            "keep-handshakes", \.keepsHandshakes, .boolean, needsRestart: true,
            """
            Whether opening handshakes of WebSockets are stored to be shown, without the values of credentials. About \
            0.5 KiB per connection, at most 8 KiB.
            """),
        .section(
            .transfers, \.transfers, example: "{directories: [/var/lib/sluice/files]}",
            "HTTP transfers made over the REST interface; by default without files and credentials."),
    ]

    private mutating func readMode(_ section: SectionReader<ControlSettings>) {
        guard section.has(.mode) else { return }
        guard case .unix(let path, let defaultMode)? = self.address else {
            section.add(.mode, expected: "no mode, as only a Unix socket has one", remedy: "leave it out")
            return
        }
        self.address = .unix(path: path, mode: section.value(.mode, as: .permissions) ?? defaultMode)
    }

    mutating func check(_ section: SectionReader<ControlSettings>) {
        Self.checkNames(.tokens, of: "token", in: section)
        Self.checkNames(.clients, of: "client", in: section)
        let url = section.isSet(.address) ? section.value(.address, as: ValueSyntax<ControlURL>.controlURL.orNone) : nil
        let isSecure = url??.isSecure == true
        if !isSecure { self.tls = nil }
        self.checkAddress(section, isSecure: isSecure)
        self.checkCallers(section)
    }

    /// The audit log identifies callers by their names.
    private static func checkNames(_ key: ControlKey, of kind: String, in section: SectionReader<ControlSettings>) {
        guard case .sequence(let nodes)? = section.node(key)?.content else { return }
        var seen: Set<String> = []
        for (index, node) in nodes.enumerated() {
            guard let name = node["name"]?.text, !seen.insert(name).inserted else { continue }
            section.problems.add(
                at: section.path(key).index(index).key("name"), expected: "a name that no other \(kind) has",
                remedy: "choose another")
        }
    }

    private func checkAddress(_ section: SectionReader<ControlSettings>, isSecure: Bool) {
        if isSecure, !section.has(.tls) {
            section.add(
                .tls, expected: "a certificate for https://", found: "none",
                remedy: "add tls: with a certificate and its key, or listen with http://")
        }
        if !isSecure, section.has(.tls) {
            section.add(.tls, expected: "no tls, as the address is not https://", remedy: "listen with https://")
        }
        if !self.isLocal, !section.has(.tokens), !section.has(.clients) {
            section.add(
                .address, expected: "a loopback address or a Unix socket, as callers are not authenticated",
                remedy:
                    "everyone who can connect may do everything: add tokens (sluice token creates them) or clients")
        }
    }

    private func checkCallers(_ section: SectionReader<ControlSettings>) {
        let requestsCertificates = (self.tls?.clientAuthentication ?? .none) != .none
        if section.has(.clients), !requestsCertificates, !section.problems.hasProblem(within: section.path(.tls)) {
            section.add(
                .clients, expected: "no clients, as no client certificates are requested",
                remedy: "listen with https:// and add client-ca to tls")
        }
        if section.has(.peers), self.address.map(\.isSocketFile) != true {
            section.add(
                .peers, expected: "no peers, as only callers on a Unix socket have a user and a group",
                remedy: "listen on unix:///PATH")
        }
        for key in [ControlKey.tokens, .clients, .peers] {
            section.rejectEmptyList(
                key, expected: "at least one of \(key.rawValue)",
                remedy: "leave it out to allow everyone on this machine")
        }
    }
}

extension ControlSettings.Address {
    /// Whether it is a Unix socket.
    package var isSocketFile: Bool {
        if case .unix = self { true } else { false }
    }
}

extension ControlToken: SettingsSection {
    static let sectionName = "ControlToken"
    static let initial = ControlToken(name: "", hash: .placeholder, scopes: [])
    static let keys: [SettingsKey<ControlToken>] = [
        .required("name", \.name, .name, "Name of the caller in the audit log, unique among tokens."),
        .required(
            "hash", \.hash, .tokenHash,
            """
            SHA-256 of the token; the token itself is not stored. Tokens have 256 random bits, so a salt or a slow \
            hash would not make them safer.
            """),
        .scopes(\.scopes),
        .orNone(
            "expires", \.expires, .timestamp, example: "2027-01-01T00:00:00Z",
            "Time from which the token is refused with 401."),
    ]
}

extension ControlClient: SettingsSection {
    static let sectionName = "ControlClient"
    static let initial = ControlClient(name: "", identity: .subject(""), scopes: [])
    static let keys: [SettingsKey<ControlClient>] = [
        .required("name", \.name, .name, "Name of the caller in the audit log, unique among clients."),
        .custom(
            "subject", .value(ValueSyntax<String>.text), example: #""CN=ops,O=Example""#,
            """
            The certificate's whole subject, as `openssl x509 -noout -subject -nameopt RFC2253` prints it; compared \
            exactly. Exactly one of `subject`, `alternative-name` and `pin` is required.
            """
        ) { section, settings in
            if let name = section.value("subject", as: ValueSyntax<String>.text) { settings.identity = .subject(name) }
        },
        .custom(
            "alternative-name", .value(ValueSyntax<String>.text), example: #""spiffe://example.com/operator""#,
            "One of the certificate's alternative names: a DNS name, an e-mail address or a URI, compared exactly."
        ) { section, settings in
            let name = section.value("alternative-name", as: ValueSyntax<String>.text)
            if let name { settings.identity = .alternativeName(name) }
        },
        .custom(
            "pin", .value(ValueSyntax.publicKeyPin),
            "SHA-256 of the certificate's public key. A renewed certificate with the same key matches too."
        ) { section, settings in
            if let pin = section.value("pin", as: .publicKeyPin) { settings.identity = .pin(pin) }
        },
        .scopes(\.scopes),
    ]

    mutating func check(_ section: SectionReader<ControlClient>) {
        let present = (["subject", "alternative-name", "pin"] as [SettingsKeyName<Self>]).filter(section.has)
        guard present.count != 1 else { return }
        section.add(
            present.last ?? "subject", expected: "one of subject, alternative-name and pin",
            remedy: present.isEmpty ? "add the one that its certificate has" : "leave out the others")
    }
}

extension ControlPeer: SettingsSection {
    static let sectionName = "ControlPeer"
    static let initial = ControlPeer(scopes: [])
    static let keys: [SettingsKey<ControlPeer>] = [
        .optional(
            "uid", \.user, .identifier, default: "any", example: "1000",
            "User ID of the process when it connected. `uid`, `gid` or both are required; both must match."),
        .optional(
            "gid", \.group, .identifier, default: "any", example: "998",
            "Effective group ID of the process when it connected; its other groups do not count."),
        .scopes(\.scopes),
    ]

    mutating func check(_ section: SectionReader<ControlPeer>) {
        guard !section.has("uid"), !section.has("gid") else { return }
        section.add("uid", expected: "uid, gid or both", found: "nothing", remedy: "add uid: with the user's number")
    }
}

extension SettingsKey {
    /// The scopes of a caller; at least one is required.
    fileprivate static func scopes(_ property: Property<Set<ControlScope>>) -> Self {
        .custom(
            "scopes", .list(.value(ValueSyntax<ControlScope>.choice)), default: "none; required",
            example: "[read, operate]",
            """
            What the caller may do: `read` reads connections and events, `operate` opens, uses and closes connections, \
            `configure` changes listeners, routes and upstreams, `metrics` reads `/metrics`. None includes another. A \
            request that needs another scope gets 403, which names it.
            """
        ) { section, settings in
            let known = ControlScope.allCases.map(\.rawValue).joined(separator: ", ")
            settings[keyPath: property] = Set(section.list("scopes", as: ValueSyntax<ControlScope>.choice) ?? [])
            if !section.has("scopes") {
                section.add(
                    "scopes", expected: "a list of scopes", found: "nothing", remedy: "add some of \(known)")
            }
            section.rejectEmptyList("scopes", expected: "at least one scope", remedy: "known are \(known)")
        }
    }
}

extension ValueSyntax<UInt32> {
    /// The number of a user or a group.
    fileprivate static var identifier: ValueSyntax {
        let number = ValueSyntax<Int>.integer(0...4_294_967_294)
        return ValueSyntax(number.form) { text throws(ValueSyntaxError) in UInt32(clamping: try number.parse(text)) }
    }
}
