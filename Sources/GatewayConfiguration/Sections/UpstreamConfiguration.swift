import WireText

/// A named group of interchangeable endpoints.
package struct UpstreamConfiguration: Sendable, Equatable {
    /// How an endpoint is chosen among those that are not ejected.
    package enum Policy: String, Sendable, Equatable, CaseIterable {
        /// Each in turn, by weight.
        case roundRobin = "round-robin"
        /// The one with the fewest open connections for its weight.
        case leastConnections = "least-connections"
        /// The first usable one of the list.
        case failover
    }

    package var name: String
    /// At least one; either all streams (`tcp`, `tls`, `unix`) or all WebSockets (`ws`, `wss`).
    package var endpoints: [UpstreamEndpoint]
    package var policy = Policy.roundRobin
    package var connectTimeout: Duration = .seconds(10)
    /// For the TLS handshake and the opening handshake together.
    package var handshakeTimeout: Duration = .seconds(10)
    package var retry = RetryPolicy()
    package var ejection = EjectionPolicy()
    /// Used by `tls` and `wss` endpoints.
    package var tls = ClientTLSSettings()
    /// `nil` connects directly.
    package var proxy: UpstreamProxy?
    /// Subprotocols offered to WebSocket endpoints instead of the client's offers; empty forwards the client's offers.
    package var subprotocols: [String] = []

    package init(name: String, endpoints: [UpstreamEndpoint]) {
        self.name = name
        self.endpoints = endpoints
    }

    /// Subprotocols offered to an endpoint if the client offers none: the upstream's own, else the route's.
    package func subprotocols(of route: RouteConfiguration) -> [String] {
        self.subprotocols.isEmpty ? route.subprotocols : self.subprotocols
    }

    /// Whether its endpoints are WebSockets.
    package var speaksWebSocket: Bool {
        self.endpoints.first?.url.scheme.speaksWebSocket ?? false
    }
}

/// One address of an upstream.
package struct UpstreamEndpoint: Sendable, Equatable {
    package var url: EndpointURL
    /// Share relative to the other endpoints.
    package var weight: Int

    package init(url: EndpointURL, weight: Int = 1) {
        self.url = url
        self.weight = weight
    }
}

/// Address and protocol of an endpoint.
package struct EndpointURL: Sendable, Hashable, CustomStringConvertible {
    package enum Scheme: String, Sendable, Hashable, CaseIterable {
        case tcp, tls, unix, ws, wss

        package var speaksWebSocket: Bool { self == .ws || self == .wss }
        package var speaksTLS: Bool { self == .tls || self == .wss }
    }

    package enum Location: Sendable, Hashable {
        /// A host name in lower case.
        case name(String, port: UInt16)
        case address(IPAddress, port: UInt16)
        /// A Unix socket's path, at most 107 bytes.
        case unix(path: String)
    }

    package var scheme: Scheme
    package var location: Location
    /// Path and query of a WebSocket endpoint, beginning with `/`; `{name}` is replaced by a parameter of the route's
    /// path. Empty for streams.
    package var resource: ResourceTemplate

    package init(scheme: Scheme, location: Location, resource: ResourceTemplate = ResourceTemplate()) {
        self.scheme = scheme
        self.location = location
        self.resource = resource
    }

    /// Value of the `Host` field: host and port, without the scheme's default port; `localhost` for a Unix socket.
    package var authority: String {
        switch self.location {
        case .unix: "localhost"
        case .name(let name, let port): name + self.portSuffix(port)
        case .address(.v6(let high, let low), let port):
            "[\(IPAddress.v6(high: high, low: low))]" + self.portSuffix(port)
        case .address(let address, let port): "\(address)" + self.portSuffix(port)
        }
    }

    /// The name or address that TLS verifies unless `server-name` is set; `nil` for a Unix socket.
    package var hostName: String? { self.location.hostName }

    private func portSuffix(_ port: UInt16) -> String {
        switch (self.scheme, port) {
        case (.ws, 80), (.wss, 443): ""
        default: ":\(port)"
        }
    }

    /// The URL in its normal form.
    package var description: String {
        switch (self.location, self.scheme) {
        case (.unix(let path), .unix): "unix://\(path)"
        case (.unix(let path), _) where self.scheme.speaksWebSocket: "\(self.scheme)+unix://\(path):\(self.resource)"
        case (.unix(let path), _): "\(self.scheme)+unix://\(path)"
        default: "\(self.scheme)://\(self.authority)\(self.resource)"
        }
    }
}

extension EndpointURL.Location {
    /// The name, or the address as text; `nil` for a Unix socket.
    package var hostName: String? {
        switch self {
        case .unix: nil
        case .name(let name, _): name
        case .address(let address, _): "\(address)"
        }
    }
}

/// Path and query of a WebSocket endpoint, with placeholders for the parameters of the route's path.
package struct ResourceTemplate: Sendable, Hashable, CustomStringConvertible {
    package enum Part: Sendable, Hashable {
        case text(String)
        case parameter(String)
    }

    package let parts: [Part]

    package init(_ parts: [Part] = []) {
        self.parts = parts
    }

    package var isEmpty: Bool { self.parts.isEmpty }

    /// Names of its parameters.
    package var parameters: [String] {
        self.parts.compactMap { part in
            if case .parameter(let name) = part { name } else { nil }
        }
    }

    /// Path and query for one request.
    ///
    /// - Parameters:
    ///   - parameters: values, percent-encoded as the client sent them; a missing one is empty.
    ///   - query: the client's query without `?`, to be appended with `?` or `&`; `nil` or empty appends nothing.
    package func resource(parameters: [String: String], query: String?) -> String {
        var text = ""
        for part in self.parts {
            switch part {
            case .text(let piece): text += piece
            case .parameter(let name):
                let value = parameters[name] ?? ""
                text += text.utf8.contains(UInt8(ascii: "?")) ? Self.queryValue(value) : value
            }
        }
        guard let query, !query.isEmpty else { return text }
        return text + (text.utf8.contains(UInt8(ascii: "?")) ? "&" : "?") + query
    }

    /// Percent-encodes the delimiters of a query.
    private static func queryValue(_ value: String) -> String {
        guard value.utf8.contains(where: { self.escapes[$0] != nil }) else { return value }
        return value.utf8.reduce(into: "") { text, byte in
            text += self.escapes[byte] ?? String(UnicodeScalar(byte))
        }
    }

    private static let escapes = [
        UInt8(ascii: "&"): "%26", UInt8(ascii: ";"): "%3B", UInt8(ascii: "+"): "%2B", UInt8(ascii: "="): "%3D",
    ]

    package var description: String {
        self.parts.reduce(into: "") { text, part in
            switch part {
            case .text(let piece): text += piece
            case .parameter(let name): text += "{\(name)}"
            }
        }
    }

    /// Parses path and query (RFC 3986) with parameters as `{name}`. An empty path becomes `/`.
    package init(parsing text: Substring) throws(ValueSyntaxError) {
        let error = ValueSyntaxError(
            expected: "a path of RFC 3986's characters, with parameters as {name}",
            remedy: "percent-encode other characters, and close each { with }")
        var parts: [Part] = []
        var literal = text.first == "/" ? "" : "/"
        guard text.isEmpty || text.first == "/" || text.first == "?" else { throw error }
        var rest = text
        while let first = rest.first {
            if first == "%" {
                guard rest.utf8.dropFirst().prefix(2).count(where: { $0.hexadecimalValue != nil }) == 2 else {
                    throw ValueSyntaxError(
                        expected: "two hexadecimal digits after each %", remedy: "write a % itself as %25")
                }
                literal += rest.prefix(3)
                rest = rest.dropFirst(3)
            } else if first == "{" {
                guard let end = rest.firstIndex(of: "}") else { throw error }
                let name = rest[..<end].dropFirst()
                guard NameText.isParameter(name) || ClaimParameter.claim(of: name) != nil else { throw error }
                if !literal.isEmpty { parts.append(.text(literal)) }
                literal = ""
                parts.append(.parameter(String(name)))
                rest = rest[end...].dropFirst()
            } else {
                guard let byte = first.asciiValue, NameText.isResourceByte(byte) else { throw error }
                literal.append(first)
                rest = rest.dropFirst()
            }
        }
        if !literal.isEmpty { parts.append(.text(literal)) }
        self.init(parts)
    }
}

/// Passive check: when an endpoint is ejected. If all endpoints of an upstream are, each may be chosen.
package struct EjectionPolicy: Sendable, Equatable {
    /// `nil` never ejects.
    package var failures: Int? = 5
    package var duration: Duration = .seconds(30)

    static let keys: [SettingsKey<EjectionPolicy>] = [
        .orNone(
            "eject-failures", \.failures, .integer(1...1000),
            """
            Consecutive failures (connecting, TLS, opening handshake) after which an endpoint is ejected: it is not chosen \
            while another is usable. One more failure after its return ejects it again. `none` never ejects.
            """),
        .value(
            "eject-duration", \.duration, .duration(.milliseconds(100) ... .seconds(86_400)),
            """
            How long an endpoint stays ejected; twice as long each further time without a success between, up to 16 times \
            as long.
            """),
    ]
}

/// Further attempts if connecting to an upstream fails. Nothing is retried once the first byte was sent.
package struct RetryPolicy: Sendable, Equatable {
    package var attempts = 2
    package var initialDelay: Duration = .milliseconds(100)
    /// At least `initialDelay`.
    package var maximumDelay: Duration = .seconds(5)

    package init() {}

    static let keys: [SettingsKey<RetryPolicy>] = [
        .value(
            "retries", \.attempts, .integer(0...100),
            """
            Attempts after the first, each at the endpoint that the policy chooses next; after the last one a client \
            gets 502 or 504, and a raw client is reset. Connecting, TLS and the opening handshake are retried, as no \
            byte of the client was sent until then. Not retried: 401, 403, 404 and 429, which are for the client, and \
            for the same client an endpoint whose certificate or pin is not accepted, or that refuses ours.
            """),
        .value(
            "retry-delay", \.initialDelay, .duration(.zero ... .seconds(60)),
            """
            Delay before the first retry. It doubles with each retry, and random jitter shortens it by up to half. `0` \
            retries at once.
            """),
        .value(
            "retry-max-delay", \.maximumDelay, .duration(.zero ... .seconds(600)),
            defaultNote: ", or `retry-delay` if that is longer", example: "1s",
            "Upper bound of the delay; at least `retry-delay`."),
    ]
}

/// Keys of an entry of `upstreams`.
package typealias UpstreamKey = SettingsKeyName<UpstreamConfiguration>

extension UpstreamKey {
    package static var endpoints: Self { "endpoints" }
    package static var tls: Self { "tls" }
    package static var proxy: Self { "proxy" }
    package static var subprotocols: Self { "subprotocols" }
    fileprivate static var name: Self { "name" }
    fileprivate static var retryMaxDelay: Self { "retry-max-delay" }
}

/// Keys of an entry of `endpoints`.
package typealias EndpointKey = SettingsKeyName<UpstreamEndpoint>

extension EndpointKey {
    package static var url: Self { "url" }
}

extension UpstreamConfiguration: SettingsSection {
    static let sectionName = "Upstream"
    static let initial = UpstreamConfiguration(name: "", endpoints: [])
    static let keys: [SettingsKey<UpstreamConfiguration>] =
        Self.connectingKeys + SettingsKey.group(RetryPolicy.keys, \.retry)
        + SettingsKey.group(EjectionPolicy.keys, \.ejection) + Self.handshakeKeys

    private static let connectingKeys: [SettingsKey<UpstreamConfiguration>] = [
        .required(
            .name, \.name, .name,
            """
            Name for routes, unique among upstreams; not `echo`, `chat` or `none`. A reload takes an upstream of \
            another name for another upstream.
            """),
        .custom(
            .endpoints,
            .list(.either([.value(ValueSyntax.endpointURL), .of(UpstreamEndpoint.self)])),
            example: "[tcp://10.0.0.5:5432, tcp://10.0.0.6:5432]",
            """
            Interchangeable endpoints: URLs, or mappings with `url` and `weight`. At least one is required; either all \
            are streams or all are WebSockets.
            """
        ) { section, settings in settings.readEndpoints(section) },
        .value(
            "policy", \.policy, .choice,
            """
            How an endpoint is chosen among those that are not ejected. `round-robin`: each in turn, by weight. \
            `least-connections`: the one with the fewest open connections for its weight. `failover`: the first usable \
            one.
            """),
        .value(
            "connect-timeout", \.connectTimeout, .duration(.attempt),
            "Timeout for one connection attempt with name resolution. Then the next attempt follows, or 504."),
        .value(
            "handshake-timeout", \.handshakeTimeout, .duration(.attempt),
            "Timeout for the TLS handshake and the opening handshake with an endpoint together. Then 504."),
    ]

    private static let handshakeKeys: [SettingsKey<UpstreamConfiguration>] = [
        .section(
            .tls, \.tls, example: "{ca: internal-ca.pem}",
            """
            TLS of `tls` and `wss` endpoints; refused without one. Certificates are verified unless `insecure` is set.
            """),
        .custom(
            .proxy, .either([.value(ValueSyntax.proxyURL), .of(UpstreamProxy.self)]),
            example: "http://proxy.example:3128",
            """
            Proxy through which all endpoints are reached: its URL, or a mapping with `url`, `user` and `password` or \
            `password-file`. The time for its answer is `connect-timeout`, once more. The environment's proxies are never \
            used. Not for Unix sockets.
            """
        ) { section, settings in settings.readProxy(section) },
        .list(
            .subprotocols, \.subprotocols, .subprotocol, example: "[mqtt]",
            """
            Subprotocols offered to WebSocket endpoints instead of the client's offers; without a list the client's \
            offers are forwarded. An endpoint that accepts another one fails the connection (502).
            """),
    ]

    mutating func check(_ section: SectionReader<UpstreamConfiguration>) {
        if ["echo", "chat", "none"].contains(self.name) {
            section.add(.name, expected: "a name other than echo, chat and none", remedy: "choose another")
        }
        let isSocket = self.endpoints.contains { if case .unix = $0.url.location { true } else { false } }
        if isSocket, self.proxy != nil {
            section.add(
                .proxy, expected: "no proxy beside the endpoint of a Unix socket", remedy: "leave the proxy out")
        }
        if section.isSet(.retryMaxDelay), self.retry.maximumDelay < self.retry.initialDelay {
            section.add(
                .retryMaxDelay, expected: "at least the retry delay of \(DurationText(self.retry.initialDelay))")
        }
        self.retry.maximumDelay = max(self.retry.maximumDelay, self.retry.initialDelay)
    }

    /// A URL, or a mapping with `url`, `user` and a password.
    private mutating func readProxy(_ section: SectionReader<UpstreamConfiguration>) {
        guard let node = section.node(.proxy) else { return }
        if case .scalar = node.content {
            self.proxy = section.value(.proxy, as: ValueSyntax.proxyURL).map { UpstreamProxy($0) }
        } else {
            self.proxy = section.section(.proxy)
        }
    }

    /// A list of URLs, or of mappings with `url` and `weight`; or one URL.
    private mutating func readEndpoints(_ section: SectionReader<UpstreamConfiguration>) {
        if let node = section.node(.endpoints), case .scalar = node.content {
            self.endpoints = [UpstreamEndpoint(url: section.value(.endpoints, as: .endpointURL) ?? .placeholder)]
            return
        }
        let elements = section.elements(.endpoints)
        if elements.isEmpty, section.problems.isValid(section.path(.endpoints)) {
            section.add(
                .endpoints, expected: "at least one endpoint", remedy: "write it like endpoints: [tcp://127.0.0.1:5900]"
            )
        }
        self.endpoints = elements.map { node, path in
            guard case .scalar = node.content else {
                return UpstreamEndpoint(reading: SectionReader(node, at: path, problems: section.problems))
            }
            return UpstreamEndpoint(url: section.parse(node, at: path, as: .endpointURL) ?? .placeholder)
        }
    }
}

extension UpstreamEndpoint: SettingsSection {
    static let sectionName = "Endpoint"
    static let initial = UpstreamEndpoint(url: .placeholder)
    static let keys: [SettingsKey<UpstreamEndpoint>] = [
        .required(.url, \.url, .endpointURL, "Address and protocol of the endpoint; ports from 1 to 65535."),
        .value(
            "weight", \.weight, .integer(1...1000), example: "3",
            "Share of connections relative to the other endpoints. No effect with `failover`."),
    ]
}

extension EndpointURL {
    /// Used for a URL that could not be parsed; the configuration is rejected anyway.
    static let placeholder = EndpointURL(scheme: .tcp, location: .address(.loopback, port: 1))
}
