extension ControlSettings {
    init(reading section: SectionReader<ControlKey>) {
        self.init()
        var url = self.address.map { ControlURL($0) }
        section.readOrNone(.address, into: &url, as: .controlURL)
        self.address = url?.address
        self.isExplicit = section.has(.address)
        section.read(.closedConnections, into: &self.closedConnections, as: .integer(0...100_000))
        section.read(.keepHandshakes, into: &self.keepsHandshakes, as: .boolean)
        section.read(.maxConnections, into: &self.maximumConnections, as: .integer(1...100_000))
        section.read(
            .maxConnectionsPerClient, into: &self.maximumConnectionsPerClient, as: .integer(1...100_000))
        section.read(.maxRequests, into: &self.maximumRequests, as: .integer(1...10_000))
        section.readOrNone(.requestRate, into: &self.requestRate, as: .rate(1...100_000))
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

    /// The audit log tells callers apart by them.
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
        if section.has(.clients), !asksForCertificates, !section.problems.hasFlaw(within: section.path(.tls)) {
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
