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
        section.readOrNone(
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
        guard case .unix(let path, let standard) = self.address else {
            guard section.problems.isSound(section.path(.listen)) else { return }
            section.add(.mode, expected: "no mode, as only a Unix socket has one", remedy: "leave it out")
            return
        }
        self.address = .unix(path: path, mode: section.value(.mode, as: .permissions) ?? standard)
    }

    /// What a kind of listener needs and what it cannot have.
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
                expected: "no route on a \(kind.rawValue) listener, as its requests choose one by host and path",
                remedy: "give the route a path, and its listeners if it is for this one alone")
        } else if !kind.speaksWebSocket, !section.has(.route) {
            section.add(
                .route, expected: "the route that connections of a \(kind.rawValue) listener take", found: "nothing",
                remedy: "add route: NAME")
        }
    }
}
