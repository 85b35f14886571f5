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
    /// Whether the address was configured: if the default address is in use, the control plane is left out with a
    /// warning.
    package var isExplicit = false
    /// Connections remembered after their end, 0 to 100 000.
    package var closedConnections = 1000
    /// Whether opening handshakes of WebSockets are kept to be shown, at about half a KiB a connection.
    package var keepsHandshakes = true
    /// TLS of the listener; present where the address is `https://`.
    package var tls: ServerTLSSettings?
    /// Callers and their scopes. If all three lists are empty, every caller may do everything, and the listener is on
    /// loopback or a Unix socket.
    package var tokens: [ControlToken] = []
    package var clients: [ControlClient] = []
    package var peers: [ControlPeer] = []
    /// Names by which requests may ask for the listener, beside addresses in digits and `localhost`.
    package var hosts: [HostPattern] = []
    /// Permitted targets of connections opened through the control plane; `nil` is the default for the address.
    package var writtenTargets: TargetRules?
    /// Concurrent connections, 1 to 100 000; beyond that, the connection that has waited longest for a request is
    /// closed.
    package var maximumConnections = Self.standardConnections
    /// Connections at once of one address (an IPv6 /64), 1 to 100 000.
    package var maximumConnectionsPerClient = 256
    /// Requests carried out at once, 1 to 10 000; more are answered with 503.
    package var maximumRequests = 256
    /// Requests of each caller a second, 1 to 100 000; more are answered with 429. `nil` is any number.
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
        self.writtenTargets ?? (self.isLocal ? .ofLocalCallers : .ofRemoteCallers)
    }

    package init() {}
}

/// Whose certificates the control plane knows, and what they may do.
package struct ControlClient: Sendable, Equatable {
    /// Property that a client certificate must have.
    package enum Mark: Sendable, Equatable {
        /// Its whole subject in the form of RFC 2253: `CN=ops,O=Example`.
        case subject(String)
        /// One of its alternative names: a DNS name, an e-mail address or a URI, compared exactly.
        case alternativeName(String)
        case pin(PublicKeyPin)
    }

    /// Stands in the audit log.
    package var name: String
    package var mark: Mark
    package var scopes: Set<ControlScope>

    package init(name: String, mark: Mark, scopes: Set<ControlScope>) {
        self.name = name
        self.mark = mark
        self.scopes = scopes
    }
}

/// A process on this machine that may use the control plane's Unix socket, known by what the kernel says of it.
package struct ControlPeer: Sendable, Equatable {
    /// The user that it ran as when it connected; `nil` is any.
    package var user: UInt32?
    /// Its group, the effective one alone; `nil` is any.
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
    /// Sees connections and what happens to them.
    case read
    /// Opens, sends, closes: everything that touches connections.
    case operate
    /// Changes listeners, routes and upstreams.
    case configure
    /// Reads `/metrics`.
    case metrics
}

/// A bearer token that the control plane takes, known by its hash alone.
package struct ControlToken: Sendable, Equatable {
    /// Stands in the audit log.
    package var name: String
    package var hash: TokenHash
    package var scopes: Set<ControlScope>
    /// Milliseconds since 1970-01-01T00:00:00Z; `nil` is never.
    package var expires: Int64?

    package init(name: String, hash: TokenHash, scopes: Set<ControlScope>, expires: Int64? = nil) {
        self.name = name
        self.hash = hash
        self.scopes = scopes
        self.expires = expires
    }
}

/// The SHA-256 of a token's text. A token is made of 256 random bits, so that neither salt nor slowness would add to it.
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
            self.writtenTargets = TargetRules(rules)
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
        guard case .unix(let path, let standard)? = self.address else {
            section.add(.mode, expected: "no mode, as only a Unix socket has one", remedy: "leave it out")
            return
        }
        self.address = .unix(path: path, mode: section.value(.mode, as: .permissions) ?? standard)
    }

    private mutating func readCallers(_ section: SectionReader<ControlKey>) {
        self.tokens = section.elements(.tokens).compactMap {
            ControlToken(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
        }
        self.clients = section.elements(.clients).compactMap {
            ControlClient(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
        }
        self.peers = section.elements(.peers).map {
            ControlPeer(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
        }
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
            let place = ConfigurationKeyPath.root.key(ControlTokenKey.name)
            guard case .scalar(let name)? = node.node(at: place)?.content, !seen.insert(name).inserted else { continue }
            section.problems.add(
                at: path.key(ControlTokenKey.name), expected: "a name that no other \(kind) has",
                remedy: "choose another")
        }
    }

    // MARK: What goes together

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
                .address, expected: "an address of loopback or a Unix socket, as nobody has to say who they are",
                remedy:
                    "who reaches the control plane may do everything: add tokens (sluice token makes them) or clients")
        }
        let asksForCertificates = (self.tls?.clientAuthentication ?? .none) != .none
        if section.has(.clients), !asksForCertificates, !section.problems.hasProblem(within: section.path(.tls)) {
            section.add(
                .clients, expected: "no clients, as none is asked for a certificate",
                remedy: "listen with https:// and add client-ca to tls")
        }
        if section.has(.peers), self.address.map(\.isSocketFile) != true {
            section.add(
                .peers, expected: "no peers, as only those of a Unix socket are known by user and group",
                remedy: "listen on unix:///PATH")
        }
        for key in [ControlKey.tokens, .clients, .peers] {
            section.refuseEmptyList(
                key, expected: "at least one of \(key.rawValue)",
                remedy: "leave it out to let everybody in on this machine")
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
        let marks: [Mark?] = [
            section.value(.subject, as: ValueSyntax<String>.text).map { .subject($0) },
            section.value(.alternativeName, as: ValueSyntax<String>.text).map { .alternativeName($0) },
            section.value(.pin, as: .publicKeyPin).map { .pin($0) },
        ]
        let written = [ControlClientKey.subject, .alternativeName, .pin].filter { section.has($0) }
        if written.count != 1 {
            section.problems.add(
                at: section.path(written.last ?? .subject), expected: "one of subject, alternative-name and pin",
                remedy: written.isEmpty ? "add what its certificate shows" : "leave out the others")
        }
        let scopes = section.scopes(.scopes)
        guard let name, let mark = marks.compactMap({ $0 }).first else { return nil }
        self.init(name: name, mark: mark, scopes: scopes)
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
    /// The scopes of a caller: at least one.
    fileprivate func scopes(_ key: Key) -> Set<ControlScope> {
        var scopes: [ControlScope] = []
        self.readList(key, into: &scopes, as: .choice)
        let known = ControlScope.allCases.map(\.rawValue).joined(separator: ", ")
        if !self.has(key) {
            self.add(key, expected: "what the caller may do", found: "nothing", remedy: "add some of \(known)")
        }
        self.refuseEmptyList(key, expected: "at least one scope", remedy: "there are \(known)")
        return Set(scopes)
    }
}
