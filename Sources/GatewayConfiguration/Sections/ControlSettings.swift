/// Settings of the control plane.
package struct ControlSettings: Sendable, Equatable {
    /// Address of the REST interface.
    package enum Address: Sendable, Equatable {
        /// For port 0 the kernel assigns a free port, which is printed.
        case tcp(IPAddress, port: UInt16)
        /// A socket file with the permission bits `mode`.
        case unix(path: String, mode: UInt32)
    }

    package static let defaultPort: UInt16 = 8081
    package static let defaultMaximumConnections = 512

    /// `nil` turns the control plane off.
    package var address: Address? = .tcp(.loopback, port: Self.defaultPort)
    /// Whether the address was configured. If the default address is in use, the gateway logs a warning and starts
    /// without a control plane.
    package var isExplicit = false
    /// Closed connections that stay listed, 0 to 100 000.
    package var closedConnections = 1000
    /// Whether opening handshakes of WebSockets are stored to be shown, at about 0.5 KiB per connection.
    package var keepsHandshakes = true
    /// TLS of the listener; present if the address is `https://`.
    package var tls: ServerTLSSettings?
    /// Callers and their scopes. If all three lists are empty, callers are not authenticated and may do everything; the
    /// listener must then be on loopback or a Unix socket.
    package var tokens: [ControlToken] = []
    package var clients: [ControlClient] = []
    package var peers: [ControlPeer] = []
    /// Names accepted in the `Host` field, besides IP addresses and `localhost`.
    package var hosts: [HostPattern] = []
    /// `control.targets`; `nil` is the default, which depends on the address.
    package var configuredTargets: TargetRules?
    /// Concurrent connections, 1 to 100 000; above it the connection that is idle for longest is closed.
    package var maximumConnections = Self.defaultMaximumConnections
    /// Concurrent connections of one client address (an IPv6 client counts by its /64), 1 to 100 000.
    package var maximumConnectionsPerClient = 256
    /// Concurrent requests, 1 to 10 000; above it 503.
    package var maximumRequests = 256
    /// Requests per second of each caller, 1 to 100 000; above it 429. `nil` is no limit.
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

    /// Compares in constant time.
    package func matches(_ other: [UInt8]) -> Bool {
        guard other.count == self.digest.count else { return false }
        return zip(self.digest, other).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }
}

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

/// Keys of an entry of `control.clients`.
package enum ControlClientKey: String, CaseIterable, Sendable {
    case name
    case subject
    case alternativeName = "alternative-name"
    case pin
    case scopes
}

/// Keys of an entry of `control.peers`.
package enum ControlPeerKey: String, CaseIterable, Sendable {
    case uid
    case gid
    case scopes
}

/// Keys of an entry of `control.tokens`.
package enum ControlTokenKey: String, CaseIterable, Sendable {
    case name
    case hash
    case scopes
    case expires
}

extension ControlSettings {
    init(reading section: SectionReader<ControlKey>) {
        self.init()
        var url = self.address.map { ControlURL($0) }
        section.readOptionalOrNone(.address, into: &url, as: .controlURL)
        self.address = url?.address
        self.isExplicit = section.has(.address)
        section.read(.closedConnections, into: &self.closedConnections, as: .integer(0...100_000))
        section.read(.keepHandshakes, into: &self.keepsHandshakes, as: .boolean)
        section.read(.maxConnections, into: &self.maximumConnections, as: .integer(1...100_000))
        section.read(
            .maxConnectionsPerClient, into: &self.maximumConnectionsPerClient, as: .integer(1...100_000))
        section.read(.maxRequests, into: &self.maximumRequests, as: .integer(1...10_000))
        section.readOptionalOrNone(.requestRate, into: &self.requestRate, as: .rate(1...100_000))
        self.readMode(section)
        self.readCallers(section)
        section.readList(.hosts, into: &self.hosts, as: .hostPattern)
        if section.has(.targets) {
            var rules: [TargetRule] = []
            section.readList(.targets, into: &rules, as: .targetRule)
            self.configuredTargets = TargetRules(rules)
        }
        let tls = section.section(.tls, keys: ServerTLSKey.self).map { ServerTLSSettings(reading: $0) }
        self.tls = url?.isSecure == true ? tls : nil
        if let transfers = section.section(.transfers, keys: TransferKey.self) {
            self.transfers = TransferSettings(reading: transfers)
        }
        self.check(section, isSecure: url?.isSecure == true)
    }

    private mutating func readMode(_ section: SectionReader<ControlKey>) {
        section.declare(.mode, as: .permissions)
        guard section.has(.mode) else { return }
        guard case .unix(let path, let defaultMode)? = self.address else {
            section.add(.mode, expected: "no mode, as only a Unix socket has one", remedy: "leave it out")
            return
        }
        self.address = .unix(path: path, mode: section.value(.mode, as: .permissions) ?? defaultMode)
    }

    private mutating func readCallers(_ section: SectionReader<ControlKey>) {
        self.tokens = section.elements(.tokens, read: ControlToken.init(reading:)).compactMap(\.self)
        self.clients = section.elements(.clients, read: ControlClient.init(reading:)).compactMap(\.self)
        self.peers = section.elements(.peers, read: ControlPeer.init(reading:))
        Self.checkNames(section.elements(.tokens), of: "token", in: section)
        Self.checkNames(section.elements(.clients), of: "client", in: section)
    }

    /// The audit log identifies callers by their names.
    private static func checkNames(
        _ elements: [(node: DocumentNode, path: ConfigurationKeyPath)], of kind: String,
        in section: SectionReader<ControlKey>
    ) {
        var seen: Set<String> = []
        for (node, path) in elements {
            guard let name = node[ControlTokenKey.name.rawValue]?.text, !seen.insert(name).inserted else { continue }
            section.problems.add(
                at: path.key(ControlTokenKey.name), expected: "a name that no other \(kind) has",
                remedy: "choose another")
        }
    }

    /// Checks settings that require or exclude each other.
    private func check(_ section: SectionReader<ControlKey>, isSecure: Bool) {
        if isSecure, !section.has(.tls) {
            section.add(
                .tls, expected: "a certificate for https://", found: "none",
                remedy: "add tls: with a certificate and its key, or listen with http://")
        }
        if !isSecure, section.has(.tls) {
            section.add(.tls, expected: "no tls, as the address is not https://", remedy: "listen with https://")
        }
        if !self.isLocal, self.tokens.isEmpty, self.clients.isEmpty, !section.has(.tokens), !section.has(.clients) {
            section.add(
                .address, expected: "a loopback address or a Unix socket, as callers are not authenticated",
                remedy:
                    "everyone who can connect may do everything: add tokens (sluice token creates them) or clients")
        }
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

extension ControlToken {
    init?(reading section: SectionReader<ControlTokenKey>) {
        let name = section.required(.name, as: .name)
        let hash = section.required(.hash, as: .tokenHash)
        let scopes = section.scopes(.scopes)
        var expires: Int64?
        section.readOptionalOrNone(.expires, into: &expires, as: .timestamp)
        guard let name, let hash else { return nil }
        self.init(name: name, hash: hash, scopes: scopes, expires: expires)
    }
}

extension ControlClient {
    init?(reading section: SectionReader<ControlClientKey>) {
        let name = section.required(.name, as: .name)
        let identities: [Identity?] = [
            section.value(.subject, as: ValueSyntax<String>.text).map { .subject($0) },
            section.value(.alternativeName, as: ValueSyntax<String>.text).map { .alternativeName($0) },
            section.value(.pin, as: .publicKeyPin).map { .pin($0) },
        ]
        let present = [ControlClientKey.subject, .alternativeName, .pin].filter { section.has($0) }
        if present.count != 1 {
            section.problems.add(
                at: section.path(present.last ?? .subject), expected: "one of subject, alternative-name and pin",
                remedy: present.isEmpty ? "add the one that its certificate has" : "leave out the others")
        }
        let scopes = section.scopes(.scopes)
        guard let name, let identity = identities.compactMap({ $0 }).first else { return nil }
        self.init(name: name, identity: identity, scopes: scopes)
    }
}

extension ControlPeer {
    init(reading section: SectionReader<ControlPeerKey>) {
        let identifiers = ValueSyntax<Int>.integer(0...4_294_967_294)
        self.init(scopes: section.scopes(.scopes))
        self.user = section.value(.uid, as: identifiers).map { UInt32(clamping: $0) }
        self.group = section.value(.gid, as: identifiers).map { UInt32(clamping: $0) }
        if !section.has(.uid), !section.has(.gid) {
            section.add(.uid, expected: "uid, gid or both", found: "nothing", remedy: "add uid: with the user's number")
        }
    }
}

extension SectionReader {
    /// Reads the scopes of a caller; at least one is required.
    fileprivate func scopes(_ key: Key) -> Set<ControlScope> {
        var scopes: [ControlScope] = []
        self.readList(key, into: &scopes, as: .choice)
        let known = ControlScope.allCases.map(\.rawValue).joined(separator: ", ")
        if !self.has(key) {
            self.add(key, expected: "what the caller may do", found: "nothing", remedy: "add some of \(known)")
        }
        self.rejectEmptyList(key, expected: "at least one scope", remedy: "known are \(known)")
        return Set(scopes)
    }
}
