/// Arguments of `sluice bridge`. They are converted to a configuration document, so that every option has the same
/// syntax, range and checks as in a file; a problem names the option.
package struct BridgeRequest: Sendable, Equatable {
    /// An option and its text; `nil` for a flag.
    package struct Option: Sendable, Equatable {
        package let name: BridgeOption
        package let text: String?

        package init(_ name: BridgeOption, _ text: String? = nil) {
            self.name = name
            self.text = text
        }
    }

    package var listen: String
    /// Empty where the option `targets` takes its place.
    package var target: String
    /// In the order of the command line.
    package var options: [Option]
    /// Towards TARGET; `nil` for none.
    package var proxy: UpstreamProxy?
    /// What names the proxy: an option, or a variable of the environment.
    package var proxySource = "--proxy"

    package init(listen: String, target: String, options: [Option] = []) {
        self.listen = listen
        self.target = target
        self.options = options
    }

    /// Reads the configuration, with the checks of a file and those of the command line.
    package func read() throws(ConfigurationProblems) -> LocatedConfiguration {
        let (problems, corrected) = BridgeAudit(self).findings()
        guard !problems.isEmpty else { return try ConfigurationReader.read(BridgeDocument(request: self).document()) }
        do throws(ConfigurationProblems) {
            _ = try ConfigurationReader.read(BridgeDocument(request: corrected).document())
        } catch {
            throw ConfigurationProblems(problems + error.all)
        }
        throw ConfigurationProblems(problems)
    }
}

/// Builds the configuration document equivalent to a bridge: a listener, a route, and an upstream.
struct BridgeDocument {
    let request: BridgeRequest

    private static let listen = ConfigurationOrigin.option("LISTEN")
    private static let target = ConfigurationOrigin.option("TARGET")
    private var hasBuiltInTarget: Bool { ["echo", "chat"].contains(self.request.target) }
    private var hasUpstream: Bool { !self.hasBuiltInTarget && !self.has(.targets) }

    func document() -> DocumentNode {
        var gateway = Section(Self.listen)
        gateway.add("listeners", [self.listener()])
        gateway.add("routes", [self.route()] + self.webRoutes())
        if self.hasUpstream { gateway.add("upstreams", [self.upstream()]) }
        self.copyOptions(of: .gateway, to: &gateway)
        if self.has(.quiet), !self.has(.logLevel) { gateway.add("log-level", "error", .option("--quiet")) }
        return gateway.node
    }

    private func listener() -> DocumentNode {
        var listener = Section(Self.listen)
        listener.add("name", "bridge", Self.listen)
        listener.add("listen", self.address, Self.listen)
        if !self.speaksWebSocket { listener.add("route", "bridge", Self.listen) }
        self.copyOptions(of: .listener, to: &listener)
        self.addTLS(.listenerTLS, to: &listener)
        if self.proxyWords.contains("in") { listener.add("proxy-protocol", "accept", .option("--proxy-protocol")) }
        return listener.node
    }

    private func route() -> DocumentNode {
        var route = Section(Self.target)
        route.add("name", "bridge", Self.listen)
        if !self.has(.targets) {
            route.add("target", self.hasBuiltInTarget ? self.request.target : "target", Self.target)
        }
        if self.speaksWebSocket { route.add("path", self.path, Self.listen) }
        self.copyOptions(of: .route, to: &route)
        if let version = self.proxyVersion { route.add("proxy-protocol", version, .option("--proxy-protocol")) }
        return route.node
    }

    /// Files for plain requests: at every path, and at the path of LISTEN if that is `/`.
    private func webRoutes() -> [DocumentNode] {
        guard self.has(.web), self.speaksWebSocket else { return [] }
        let origin = ConfigurationOrigin.option(BridgeOption.web.argument)
        let paths = [("web", "/{path...}")] + (self.path == "/" ? [("web-index", "/")] : [])
        return paths.map { name, path in
            var route = Section(origin)
            route.add("name", name, origin)
            route.add("path", path, origin)
            self.copyOptions(of: .web, to: &route)
            return route.node
        }
    }

    private func upstream() -> DocumentNode {
        var upstream = Section(Self.target)
        upstream.add("name", "target", Self.target)
        upstream.add("endpoints", self.request.target, Self.target)
        self.copyOptions(of: .upstream, to: &upstream)
        self.addTLS(.upstreamTLS, to: &upstream)
        if let proxy = self.request.proxy { upstream.add("proxy", self.proxy(proxy)) }
        return upstream.node
    }

    private func proxy(_ proxy: UpstreamProxy) -> DocumentNode {
        let origin = ConfigurationOrigin.option(self.request.proxySource)
        guard proxy.user != nil || proxy.password != nil else {
            return DocumentNode(.scalar(proxy.url.description), origin: origin)
        }
        var section = Section(origin)
        section.add("url", proxy.url.description, origin)
        if let user = proxy.user { section.add("user", user, origin) }
        if case .text(let password)? = proxy.password { section.add("password", password, origin) }
        return section.node
    }

    private func addTLS(_ place: BridgeOption.Section, to section: inout Section) {
        let options = BridgeOption.allCases.filter { option in option.keys.contains { $0.section == place } }
        guard let first = options.first(where: self.has) else { return }
        var tls = Section(.option(first.argument))
        self.copyOptions(of: place, to: &tls)
        section.add("tls", tls.node)
    }

    /// Adds the keys of `place` that options set: flags as `true`, repeated options as a list, of others the last.
    private func copyOptions(of place: BridgeOption.Section, to section: inout Section) {
        for option in BridgeOption.allCases where self.has(option) {
            for key in option.keys where key.section == place && !self.isForwarded(option, by: place) {
                let texts = self.texts(of: option)
                if option.isList {
                    section.add(key.name, texts.map { DocumentNode(.scalar($0), origin: .option(option.argument)) })
                } else {
                    section.add(key.name, texts.last ?? "true", .option(option.argument))
                }
            }
        }
    }

    /// Subprotocols belong to the route of WebSocket clients, else to the upstream: between two WebSockets the client's
    /// own offers, limited by the route's list, are passed on.
    private func isForwarded(_ option: BridgeOption, by place: BridgeOption.Section) -> Bool {
        option == .subprotocol && (place == .route) != self.speaksWebSocket
    }

    private var speaksWebSocket: Bool {
        let scheme = self.request.listen.prefix { $0 != ":" && $0 != "+" }.lowercased()
        return scheme == "ws" || scheme == "wss"
    }

    /// Path of LISTEN; empty if LISTEN cannot be parsed, so that its problem is reported for the whole text.
    private var resource: String {
        guard self.speaksWebSocket, let url = try? ListenURL(self.request.listen) else { return "" }
        return url.resource
    }

    private var address: String {
        let resource = self.resource
        guard !resource.isEmpty else { return self.request.listen }
        let address = self.request.listen.dropLast(resource.count)
        // The path after a Unix socket is preceded by a colon.
        return String(address.hasSuffix(":") && address.contains("+unix://") ? address.dropLast() : address)
    }

    /// Without a path all requests are accepted.
    private var path: String { self.resource.isEmpty ? "/{path...}" : self.resource }

    private var proxyWords: [String] {
        self.texts(of: .proxyProtocol).flatMap { $0.split(separator: ",").map(String.init) }
    }

    /// `out` is the default version; an unknown word is kept, so that the problem names it.
    private var proxyVersion: String? {
        let words = self.proxyWords.filter { $0 != "in" }
        return words.first { $0 != "out" } ?? (words.isEmpty ? nil : "v2")
    }

    private func has(_ name: BridgeOption) -> Bool { self.request.options.contains { $0.name == name } }

    private func texts(of name: BridgeOption) -> [String] {
        self.request.options.filter { $0.name == name }.compactMap(\.text)
    }

    /// Builds a mapping.
    private struct Section {
        private let origin: ConfigurationOrigin
        private var entries: [DocumentNode.Entry] = []

        init(_ origin: ConfigurationOrigin) {
            self.origin = origin
        }

        var node: DocumentNode { DocumentNode(.mapping(self.entries), origin: self.origin) }

        mutating func add(_ key: String, _ value: DocumentNode) {
            self.entries.append(DocumentNode.Entry(key: key, origin: value.origin, value: value))
        }

        mutating func add(_ key: String, _ text: String, _ origin: ConfigurationOrigin) {
            self.add(key, DocumentNode(.scalar(text), origin: origin))
        }

        mutating func add(_ key: String, _ nodes: [DocumentNode]) {
            self.add(key, DocumentNode(.sequence(nodes), origin: nodes.first?.origin ?? self.origin))
        }
    }
}
