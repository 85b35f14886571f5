import WireText

/// Matches connections, and says where and how their data is forwarded.
package struct RouteConfiguration: Sendable, Equatable {
    package var name: String
    /// Listeners whose requests are matched; empty is every `ws` and `wss` listener.
    package var listeners: [String] = []
    /// The request's host; `nil` is any.
    package var host: HostPattern?
    /// The request's path; `nil` if only raw listeners use the route, by its name.
    package var path: PathPattern?
    package var target: RouteTarget
    /// Accepted values of the request's `Origin`; empty accepts all.
    package var origins: [OriginPattern] = []
    /// In order of preference; empty forwards all offers to a WebSocket upstream. Towards a stream the framing's own
    /// subprotocol is supported too, as the last choice.
    package var subprotocols: [String] = []
    /// `nil` serves clients without authentication.
    package var auth: RouteAuth?
    package var passesQuery = true
    package var headers: [ExtraHeader] = []
    /// Sent before TLS; `nil` sends none.
    package var proxyProtocol: ProxyProtocolVersion?
    package var tunnel = TunnelSettings()

    package init(name: String, path: PathPattern?, target: RouteTarget) {
        self.name = name
        self.path = path
        self.target = target
    }

    /// The subprotocol for a client of a stream upstream: the first of its offers that is supported, else the framing's
    /// own if it is offered.
    package func subprotocol(towardStream offered: [String]) -> String? {
        offered.first { self.subprotocols.contains($0) } ?? offered.first { $0 == self.tunnel.framing.subprotocol }
    }
}

/// Target of a route.
package enum RouteTarget: Sendable, Equatable {
    /// A named upstream.
    case upstream(String)
    /// A single endpoint with the default settings of an upstream.
    case url(EndpointURL)
    /// Each request names one of several endpoints in a file.
    case targets(TargetSettings)
    /// Messages or bytes are sent back unchanged.
    case echo
    /// Each message goes to all other members of the room named by the path's parameter `{room}`; without this
    /// parameter the room has the route's name.
    case chat
    /// Clients speak Centrifuge's client protocol, and are in any number of rooms.
    case rooms

    /// Plain HTTP requests are answered with files.
    case files(FileSettings)
    /// Plain HTTP requests are answered with the page of `sluice serve` and its script.
    case page
    /// Plain HTTP requests are answered with the messages of rooms, as they come, or publish one.
    case roomEvents

    /// Whether the route answers plain HTTP requests, and no WebSockets or streams.
    package var answersHTTP: Bool {
        switch self {
        case .files, .page, .roomEvents: true
        case .upstream, .url, .targets, .echo, .chat, .rooms: false
        }
    }

    /// Whether a browser finds pages there.
    package var hasPages: Bool {
        switch self {
        case .files, .page: true
        case .upstream, .url, .targets, .echo, .chat, .rooms, .roomEvents: false
        }
    }

    /// Whether many connections get the same messages.
    package var sharesMessages: Bool {
        switch self {
        case .chat, .rooms: true
        case .upstream, .url, .targets, .echo, .files, .page, .roomEvents: false
        }
    }

    /// Words that name a target, and no upstream.
    package static let words = ["echo", "chat", "rooms", "room-events", "page"]

    /// Whether the gateway itself is the endpoint.
    package var isBuiltIn: Bool {
        switch self {
        case .echo, .chat, .rooms, .files, .page, .roomEvents: true
        case .upstream, .url, .targets: false
        }
    }
}

/// The paths that a route matches, as a list of segments.
package struct PathPattern: Sendable, Hashable, CustomStringConvertible {
    package enum Segment: Sendable, Hashable {
        /// Matches the same text after percent-decoding, case-sensitively.
        case literal(String)
        /// Matches any one segment that is not empty: `{room}`.
        case parameter(String)
        /// Matches all remaining segments, also none: `{rest...}`. Only as the last segment.
        case rest(String)
    }

    package let segments: [Segment]

    package init(_ segments: [Segment]) {
        self.segments = segments
    }

    /// Names of its parameters, from left to right.
    package var parameters: [String] {
        self.segments.compactMap { segment in
            switch segment {
            case .literal: nil
            case .parameter(let name), .rest(let name): name
            }
        }
    }

    /// The only request target that matches; `nil` if several match, or if it needs percent-encoding.
    package var onlyTarget: String? {
        let isTraversal = self.segments.contains { segment in
            if case .literal(let name) = segment { PathTraversal.isPossible(with: name) } else { false }
        }
        guard self.parameters.isEmpty, !isTraversal else { return nil }
        let target = self.description
        let isPlain = target.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "%"), UInt8(ascii: "?"), UInt8(ascii: "#"): false
            default: (0x21...0x7E).contains(byte)
            }
        }
        let slashes = target.utf8.count { $0 == UInt8(ascii: "/") }
        return isPlain && slashes == max(1, self.segments.count) ? target : nil
    }

    /// The pattern without the names of its parameters, which do not affect matching.
    package var shape: PathPattern {
        PathPattern(
            self.segments.map { segment in
                switch segment {
                case .literal: segment
                case .parameter: .parameter("")
                case .rest: .rest("")
                }
            })
    }

    package var description: String {
        guard !self.segments.isEmpty else { return "/" }
        return self.segments.reduce(into: "") { text, segment in
            switch segment {
            case .literal(let name): text += "/\(name)"
            case .parameter(let name): text += "/{\(name)}"
            case .rest(let name): text += "/{\(name)...}"
            }
        }
    }

    /// Parses `/chat/{room}`, `/vnc`, `/files/{rest...}`, `/`. A segment is a literal or a parameter as a whole;
    /// percent-encoded literals are decoded.
    package init(parsing text: String) throws(ValueSyntaxError) {
        guard text.hasPrefix("/"), text.utf8.count <= 1024 else {
            throw ValueSyntaxError(
                expected: "a path that begins with /, at most 1024 bytes", remedy: "write it like /chat/{room}")
        }
        var segments: [Segment] = []
        let pieces = text == "/" ? [] : text.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for piece in pieces {
            if case .rest = segments.last {
                throw ValueSyntaxError(expected: "{name...} as the last segment of the path")
            }
            segments.append(try Self.segment(piece))
        }
        self.init(segments)
        guard Set(self.parameters).count == self.parameters.count else {
            throw ValueSyntaxError(expected: "a path whose parameters have different names")
        }
    }

    private static func segment(_ piece: Substring) throws(ValueSyntaxError) -> Segment {
        guard piece.utf8.contains(where: { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }) else {
            return .literal(try self.decoded(piece))
        }
        let inner = piece.dropFirst().dropLast()
        guard piece.first == "{", piece.last == "}" else {
            throw ValueSyntaxError(
                expected: "a path in which {name} fills a whole segment", remedy: "write it like /files/{name}/raw")
        }
        let isRest = inner.hasSuffix("...")
        let name = isRest ? inner.dropLast(3) : inner
        guard NameText.isParameter(name) else {
            throw ValueSyntaxError(
                expected: "a parameter's name of letters, digits and _", remedy: "write it like {room}")
        }
        return isRest ? .rest(String(name)) : .parameter(String(name))
    }

    private static func decoded(_ piece: Substring) throws(ValueSyntaxError) -> String {
        let error = ValueSyntaxError(
            expected: "a path of RFC 3986's characters without empty segments",
            remedy: "percent-encode other characters, and leave out the query")
        // Bytes above ASCII are taken unchanged; `?` would begin a query.
        guard piece.utf8.allSatisfy({ $0 >= 0x80 || NameText.isResourceByte($0) && $0 != UInt8(ascii: "?") }),
            let text = PercentCoding.decodedText(piece), !text.isEmpty
        else { throw error }
        guard !PathTraversal.isPossible(with: text) else {
            throw ValueSyntaxError(
                expected: "a path without dot segments and control characters, however they are encoded",
                remedy: "no request can have such a path: leave the segment out")
        }
        return text
    }
}

/// An exact host name, or a wildcard for one label.
package enum HostPattern: Sendable, Hashable, CustomStringConvertible {
    /// In lower case, without port.
    case exact(String)
    /// Any single label before this suffix: `*.example.com` has the suffix `example.com`.
    case wildcard(suffix: String)

    /// - Parameter host: in any case, without port.
    package func matches(_ host: String) -> Bool {
        let host = host.lowercased()
        switch self {
        case .exact(let name): return host == name
        case .wildcard(let suffix):
            guard let dot = host.firstIndex(of: "."), dot != host.startIndex else { return false }
            return host[host.index(after: dot)...] == suffix
        }
    }

    package var description: String {
        switch self {
        case .exact(let name): name
        case .wildcard(let suffix): "*.\(suffix)"
        }
    }
}

/// Pattern for origins of web pages (RFC 6454).
package enum OriginPattern: Sendable, Hashable, CustomStringConvertible {
    /// All origins; written `*`.
    case any
    /// The opaque origin, sent as `null` by sandboxed frames, `data:` and `file:` pages.
    case opaque
    /// One site. Create it with `init(scheme:host:port:)`, which omits the scheme's default port.
    case site(scheme: String, host: HostPattern, port: UInt16?)

    /// - Parameters:
    ///   - scheme: `http` or `https`, or another in lower case.
    ///   - port: `nil` is the scheme's default port.
    package init(scheme: String, host: HostPattern, port: UInt16?) {
        let schemePort: UInt16? = scheme == "http" ? 80 : scheme == "https" ? 443 : nil
        self = .site(scheme: scheme, host: host, port: port == schemePort ? nil : port)
    }

    package var description: String {
        switch self {
        case .any: "*"
        case .opaque: "null"
        case .site(let scheme, let host, let port): "\(scheme)://\(host)" + (port.map { ":\($0)" } ?? "")
        }
    }
}

/// Keys of an entry of `routes`.
package typealias RouteKey = SettingsKeyName<RouteConfiguration>

extension RouteKey {
    package static var listeners: Self { "listeners" }
    package static var host: Self { "host" }
    package static var path: Self { "path" }
    package static var target: Self { "target" }
    package static var targets: Self { "targets" }
    package static var files: Self { "files" }
    package static var origins: Self { "origins" }
    package static var subprotocols: Self { "subprotocols" }
    package static var compress: Self { "compress" }
    package static var headers: Self { "headers" }
    package static var auth: Self { "auth" }
    package static var proxyProtocol: Self { "proxy-protocol" }
    fileprivate static var halfClose: Self { "half-close" }
    fileprivate static var maxMessageSize: Self { "max-message-size" }
}

extension RouteConfiguration: SettingsSection {
    static let sectionName = "Route"
    static let initial = RouteConfiguration(name: "", path: nil, target: .echo)
    static let keys: [SettingsKey<RouteConfiguration>] =
        Self.matchingKeys + SettingsKey.group(TunnelSettings.framingKeys, \.tunnel) + Self.handshakeKeys
        + SettingsKey.group(TunnelSettings.lifetimeKeys, \.tunnel) + Self.messageKeys
        + SettingsKey.group(KeepAliveSettings.socketKeys, \.tunnel.keepAlive)

    private static let matchingKeys: [SettingsKey<RouteConfiguration>] = [
        .required(
            "name", \.name, .name,
            """
            Name for listeners, logs and metrics, unique among routes. A reload takes a route of another name for \
            another route.
            """),
        .list(
            .listeners, \.listeners, .name, default: "all `ws` and `wss` listeners", example: "[web]",
            "Listeners whose requests are matched; at least one."),
        .optional(
            .host, \.host, .hostPattern, default: "any", example: #""*.example.com""#,
            """
            The request's host; `*.` matches one label. An exact host is preferred to a wildcard, and a wildcard to a \
            route without a host.
            """),
        .optional(
            .path, \.path, .pathPattern, example: #""/chat/{room}""#,
            """
            The request's path; required unless only raw listeners use the route, by its name. A literal segment is \
            preferred to a parameter, and a parameter to `{rest...}`. Two routes with the same host and path are \
            refused.
            """),
        .custom(
            .target, .value(ValueSyntax.routeTarget), example: "backend",
            """
            Where connections are forwarded; required unless the route has `targets` or `files`. `echo` sends each message or byte \
            back. `chat` sends each message to all others in the room that the path's parameter `{room}` names; \
            without it the room has the route's name. `rooms` serves the same rooms to programs, with Centrifuge's \
            client protocol, and `room-events` by plain HTTP, also to clients that only receive. `page` is the page of \
            `sluice serve`, for browsers. A URL is an upstream with default settings.
            """
        ) { section, settings in
            if let target = section.value(.target, as: .routeTarget) { settings.target = target }
        },
        .custom(
            .targets, .either([.value(ValueSyntax<String>.path), .of(TargetSettings.self)]),
            example: "/etc/sluice/targets",
            """
            File of targets with lines `NAME: HOST:PORT`, as websockify's token files have them, or a directory of such files. \
            Takes the place of `target`: each request names its target, by the query parameter `token`, and a name that is not \
            in the file gets 404. A mapping has more settings. See <doc:Bridges>.
            """
        ) { section, settings in
            if section.isMapping(.targets) {
                if let targets: TargetSettings = section.section(.targets) { settings.target = .targets(targets) }
            } else if let file = section.value(.targets, as: ValueSyntax<String>.path) {
                settings.target = .targets(TargetSettings(file: file))
            }
        },
        .custom(
            .files, .either([.value(ValueSyntax<String>.directory), .of(FileSettings.self)]), example: "/srv/www",
            """
            Directory of files that plain HTTP requests get, such as the page that uses a WebSocket. Takes the place of \
            `target`. The path's `{name...}` names the file; without it, and for a directory, the file is index.html. \
            A mapping has more settings. See <doc:StaticFiles>.
            """
        ) { section, settings in
            if section.isMapping(.files) {
                if let files: FileSettings = section.section(.files) { settings.target = .files(files) }
            } else if let directory = section.value(.files, as: .directory) {
                settings.target = .files(FileSettings(directory: directory))
            }
        },
    ]

    private static let handshakeKeys: [SettingsKey<RouteConfiguration>] = [
        .list(
            .origins, \.origins, .originPattern, default: "all", example: #"[https://app.example, "null"]"#,
            """
            Accepted values of the request's `Origin`, at least one; others get 403. Requests without `Origin`, which \
            browsers never send, are always accepted. `"*"` and `"null"` need quotation marks in YAML.
            """),
        .list(
            .subprotocols, \.subprotocols, .subprotocol, example: "[mqtt]",
            """
            Supported subprotocols in order of preference. Of a client's offers the first in this list is accepted; a \
            client that offers none of them is accepted without one. Towards a WebSocket upstream the list filters the \
            client's offers, and the upstream chooses. Without a list, all offers are forwarded to a WebSocket \
            upstream, and in front of a stream the framing's own subprotocol (`binary` or `base64`, as of websockify) \
            is accepted.
            """),
        .custom(
            .auth, .either([.value(ValueSyntax<String>.name), .of(RouteAuth.self)]), example: "main",
            """
            Requires a token that the entry of `tokens` of this name, or in `auth.tokens`, accepts; other requests get 401. The token \
            is expected in `Authorization: Bearer`, in the query parameter `access_token`, or where `auth` says. Needs a path.
            """
        ) { section, settings in
            if section.isMapping(.auth) {
                settings.auth = section.section(.auth)
            } else if let name = section.value(.auth, as: ValueSyntax<String>.name) {
                settings.auth = RouteAuth(tokens: name)
            }
        },
        .custom(
            .compress, .either([.value(ValueSyntax.boolean), .of(CompressionPolicy.self)]), default: "`false`",
            example: "{level: 4, min-size: 256}",
            """
            permessage-deflate (RFC 7692), accepted from clients and offered to WebSocket upstreams. A mapping turns \
            it on.
            """
        ) { section, settings in
            let isOn = section.isMapping(.compress) || section.value(.compress, as: .boolean) == true
            let policy: CompressionPolicy? = section.isMapping(.compress) ? section.section(.compress) : nil
            settings.tunnel.compression = isOn ? policy ?? CompressionPolicy() : nil
        },
        .value(
            "keep-fragmentation", \.tunnel.keepsFragmentation, .boolean,
            """
            Whether `echo` keeps the fragmentation of messages; with `compress`, frames above 64 KiB are still split. \
            A tunnel between two WebSockets always keeps it, unless one side compresses.
            """),
        .value(
            "pass-query", \.passesQuery, .boolean,
            "Whether the client's query is appended to the target's path. Only towards WebSocket upstreams."),
        .custom(
            .headers, ExtraHeader.form,
            example: "{X-Gateway: sluice}",
            """
            Fields added to the opening handshake towards a WebSocket upstream. Values have at most 4096 bytes. Fields \
            that the gateway writes itself, like `Host`, are refused. With `auth`, `{claim.NAME}` in a value is replaced by \
            this claim of the token; a client whose token has no such claim gets 403.
            """
        ) { section, settings in settings.headers = section.headers(.headers, for: .request) },
        .optional(
            .proxyProtocol, \.proxyProtocol, .choice,
            """
            Version of a PROXY header that is sent first on connections to the upstream. Refused for `echo` and \
            `chat`.
            """
        ),
    ]

    private static let messageKeys: [SettingsKey<RouteConfiguration>] = [
        .custom(
            .maxMessageSize, .value(TunnelSettings.messageSize.orNone),
            default: """
                `none` for tunnels, which relay messages without assembling them; `1MiB` for `echo`, `chat` and \
                `length-prefixed` framing
                """,
            example: "16MiB",
            """
            Largest message after inflation; above it 1009. For `echo`, `chat` and `length-prefixed` framing, which \
            assemble messages, at most `1GiB`, and `none` is refused.
            """
        ) { section, settings in settings.readMessageSize(section) },
        .custom(
            "buffer", .either([.value(BufferWatermarks.highSize), .of(BufferWatermarks.self)]),
            default: "its keys' defaults", example: "256KiB",
            """
            Bytes queued in one direction of a tunnel: the high watermark, or a mapping. The memory of one direction \
            is limited by the high watermark and one read: four times the high watermark, at most 256 KiB, and 64 KiB \
            where a read becomes one message that is compressed or in base64.
            """
        ) { section, settings in
            if section.isMapping("buffer") {
                settings.tunnel.buffer = section.section("buffer") ?? BufferWatermarks()
            } else if let high = section.value("buffer", as: BufferWatermarks.highSize) {
                settings.tunnel.buffer = BufferWatermarks(high: high, low: high / 4)
            }
        },
    ]

    mutating func check(_ section: SectionReader<RouteConfiguration>) {
        section.rejectEmptyList(
            .listeners, expected: "at least one listener", remedy: "leave it out to mean all ws and wss listeners")
        section.rejectEmptyList(
            .origins, expected: "at least one origin", remedy: "leave it out or write \"*\" to accept all origins")
        self.checkTarget(section)
        if self.tunnel.halfClose == .signal, !self.tunnel.framing.supportsEndMarker {
            section.add(
                .halfClose,
                expected: "hold or close, as an empty message is data in \(self.tunnel.framing.rawValue) framing "
                    + "and cannot mark an end",
                remedy: "choose one of them, or another framing")
        }
    }

    /// There is one target, a file of them, or static files, which leave no connection for other settings to apply to.
    private func checkTarget(_ section: SectionReader<RouteConfiguration>) {
        let given = [RouteKey.target, .targets, .files].filter(section.has)
        if given.isEmpty {
            section.add(
                .target, expected: "a value for target", found: "nothing",
                remedy: "add target: …, targets: … or files: …")
        } else if given.count > 1 {
            section.add(
                given[1], expected: "either \(given[0].rawValue) or \(given[1].rawValue)", found: "both",
                remedy: "leave out one of the two")
        }
        if case .targets(let targets) = self.target, self.auth?.query == targets.parameter,
            self.path?.parameters.contains(targets.parameter) != true
        {
            section.add(
                .targets, expected: "another parameter than auth, which takes \(targets.parameter) out of the query",
                remedy: "set parameter here, or query in auth")
        }
        guard self.target.answersHTTP else { return }
        let allowed: [RouteKey] = ["name", .listeners, .host, .path, .target, .targets, .files, .origins, .auth]
        for key in Self.keys where section.has(key.name) && !allowed.contains(key.name) {
            section.add(
                key.name, expected: "no \(key.name.rawValue), as the route answers plain HTTP requests",
                remedy: "leave it out")
        }
    }

    /// Where messages are assembled, they must have a limit, and a length prefix of four bytes implies one.
    private mutating func readMessageSize(_ section: SectionReader<RouteConfiguration>) {
        let isBuiltIn = section.isSet(.target) && self.target.isBuiltIn
        if isBuiltIn || self.tunnel.framing == .lengthPrefixed {
            self.tunnel.maximumMessageSize =
                section.value(.maxMessageSize, as: TunnelSettings.assembledMessageSize)
                ?? TunnelSettings.defaultMaximumMessageSize
        } else if let size = section.value(.maxMessageSize, as: TunnelSettings.messageSize.orNone) {
            self.tunnel.maximumMessageSize = size
        }
    }
}
