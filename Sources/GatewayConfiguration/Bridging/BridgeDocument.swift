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
    package var target: String
    /// In the order of the command line.
    package var options: [Option]

    package init(listen: String, target: String, options: [Option] = []) {
        self.listen = listen
        self.target = target
        self.options = options
    }

    /// Reads the configuration, with the checks of a file and those of the command line.
    package func read() throws(ConfigurationProblems) -> LocatedConfiguration {
        let (problems, corrected) = BridgeAudit(self).findings()
        guard !problems.isEmpty else { return try ConfigurationReader.read(BridgeDocument(self).document()) }
        do throws(ConfigurationProblems) {
            _ = try ConfigurationReader.read(BridgeDocument(corrected).document())
        } catch {
            throw ConfigurationProblems(problems + error.all)
        }
        throw ConfigurationProblems(problems)
    }
}

/// Options of `sluice bridge` that set values of its configuration.
package enum BridgeOption: String, Sendable, CaseIterable {
    case subprotocol, framing
    case halfClose = "half-close"
    case header, origin, certificate, key
    case clientCA = "client-ca"
    case clientCRL = "client-crl"
    case ca, crl
    case clientCertificate = "client-certificate"
    case clientKey = "client-key"
    case serverName = "server-name"
    case insecure, compress
    case pingInterval = "ping-interval"
    case pongTimeout = "pong-timeout"
    case maxMessageSize = "max-message-size"
    case maxConnections = "max-connections"
    case idleTimeout = "idle-timeout"
    case handshakeTimeout = "handshake-timeout"
    case connectTimeout = "connect-timeout"
    case drainTimeout = "drain-timeout"
    case proxyProtocol = "proxy-protocol"
    case logFormat = "log-format"
    case logLevel = "log-level"
    case quiet

    /// What an option requires of LISTEN or TARGET.
    enum Requirement {
        case nothing
        case secureListener, secureTarget
        case webSocketListener, webSocketTarget
        /// Either LISTEN or TARGET is a WebSocket.
        case anyWebSocket
    }

    var requirement: Requirement {
        switch self {
        case .certificate, .key, .clientCA, .clientCRL: .secureListener
        case .ca, .crl, .clientCertificate, .clientKey, .serverName, .insecure: .secureTarget
        case .origin: .webSocketListener
        case .header: .webSocketTarget
        case .subprotocol: .anyWebSocket
        case .framing, .halfClose, .compress, .pingInterval, .pongTimeout, .maxMessageSize, .maxConnections,
            .idleTimeout, .handshakeTimeout, .connectTimeout, .drainTimeout, .proxyProtocol, .logFormat, .logLevel,
            .quiet:
            .nothing
        }
    }

    var argument: String { "--\(self.rawValue)" }
}

/// Builds the configuration document equivalent to a bridge: a listener, a route, and an upstream.
struct BridgeDocument {
    private let request: BridgeRequest

    init(_ request: BridgeRequest) {
        self.request = request
    }

    private static let listen = ConfigurationOrigin.option("LISTEN")
    private static let target = ConfigurationOrigin.option("TARGET")
    private var hasBuiltInTarget: Bool { ["echo", "chat"].contains(self.request.target) }

    func document() -> DocumentNode {
        var gateway = Section(Self.listen)
        gateway.add("listeners", [self.listener()])
        gateway.add("routes", [self.route()])
        if !self.hasBuiltInTarget { gateway.add("upstreams", [self.upstream()]) }
        self.copy(.maxConnections, to: &gateway, as: "max-connections")
        self.copy(.drainTimeout, to: &gateway, as: "drain-timeout")
        self.copy(.logFormat, to: &gateway, as: "log-format")
        if self.has(.logLevel) {
            self.copy(.logLevel, to: &gateway, as: "log-level")
        } else if self.has(.quiet) {
            gateway.add("log-level", "error", .option("--quiet"))
        }
        return gateway.node
    }

    private func listener() -> DocumentNode {
        var listener = Section(Self.listen)
        listener.add("name", "bridge", Self.listen)
        listener.add("listen", self.address, Self.listen)
        if !self.speaksWebSocket { listener.add("route", "bridge", Self.listen) }
        var tls = Section(self.origin(of: [.certificate, .key, .clientCA, .clientCRL]) ?? Self.listen)
        self.copy(.certificate, to: &tls, as: "certificate")
        self.copy(.key, to: &tls, as: "key")
        self.copy(.clientCA, to: &tls, as: "client-ca")
        self.copyList(.clientCRL, to: &tls, as: "client-crl")
        if !tls.isEmpty { listener.add("tls", tls.node) }
        self.copy(.maxConnections, to: &listener, as: "max-connections")
        self.copy(.maxConnections, to: &listener, as: "max-connections-per-client")
        self.copy(.handshakeTimeout, to: &listener, as: "handshake-timeout")
        if self.proxyWords.contains("in") { listener.add("proxy-protocol", "accept", .option("--proxy-protocol")) }
        return listener.node
    }

    private func route() -> DocumentNode {
        var route = Section(Self.target)
        route.add("name", "bridge", Self.listen)
        route.add("target", self.hasBuiltInTarget ? self.request.target : "target", Self.target)
        if self.speaksWebSocket { route.add("path", self.path, Self.listen) }
        for option in [
            BridgeOption.framing, .halfClose, .pingInterval, .pongTimeout, .maxMessageSize, .idleTimeout,
        ] {
            self.copy(option, to: &route, as: option.rawValue)
        }
        self.copyList(.origin, to: &route, as: "origins")
        self.copyList(.header, to: &route, as: "headers")
        if self.speaksWebSocket { self.copyList(.subprotocol, to: &route, as: "subprotocols") }
        if self.has(.compress) { route.add("compress", "true", .option("--compress")) }
        if let version = self.proxyVersion { route.add("proxy-protocol", version, .option("--proxy-protocol")) }
        return route.node
    }

    private func upstream() -> DocumentNode {
        var upstream = Section(Self.target)
        upstream.add("name", "target", Self.target)
        upstream.add("endpoints", self.request.target, Self.target)
        self.copy(.connectTimeout, to: &upstream, as: "connect-timeout")
        // Between two WebSockets the client's own offers, limited by the route's list, are passed on.
        if !self.speaksWebSocket { self.copyList(.subprotocol, to: &upstream, as: "subprotocols") }
        var tls = Section(
            self.origin(of: [.ca, .crl, .clientCertificate, .clientKey, .serverName, .insecure]) ?? Self.target)
        self.copy(.ca, to: &tls, as: "ca")
        self.copyList(.crl, to: &tls, as: "crl")
        self.copy(.clientCertificate, to: &tls, as: "certificate")
        self.copy(.clientKey, to: &tls, as: "key")
        self.copy(.serverName, to: &tls, as: "server-name")
        if self.has(.insecure) { tls.add("insecure", "true", .option("--insecure")) }
        if !tls.isEmpty { upstream.add("tls", tls.node) }
        return upstream.node
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

    private func origin(of names: [BridgeOption]) -> ConfigurationOrigin? {
        names.first(where: self.has).map { .option("--\($0.rawValue)") }
    }

    private func copy(_ name: BridgeOption, to section: inout Section, as key: String) {
        guard let text = self.texts(of: name).last else { return }
        section.add(key, text, .option("--\(name.rawValue)"))
    }

    private func copyList(_ name: BridgeOption, to section: inout Section, as key: String) {
        let texts = self.texts(of: name)
        guard !texts.isEmpty else { return }
        section.add(key, texts.map { DocumentNode(.scalar($0), origin: .option("--\(name.rawValue)")) })
    }

    /// Builds a mapping.
    private struct Section {
        private let origin: ConfigurationOrigin
        private var entries: [DocumentNode.Entry] = []

        init(_ origin: ConfigurationOrigin) {
            self.origin = origin
        }

        var isEmpty: Bool { self.entries.isEmpty }
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
