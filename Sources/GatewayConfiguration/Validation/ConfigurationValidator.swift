import WebSocketProtocol

/// Checks relations between values: unique names, references, and settings that require or exclude each other.
///
/// Values that could not be read are skipped, so that each mistake is reported once.
package struct ConfigurationValidator {
    let configuration: Configuration
    let problems: ProblemCollector

    package static let listeners = ConfigurationKeyPath.root.key(GatewayKey.listeners)
    static let routes = ConfigurationKeyPath.root.key(GatewayKey.routes)
    package static let control = ConfigurationKeyPath.root.key(GatewayKey.control)
    package static let upstreams = ConfigurationKeyPath.root.key(GatewayKey.upstreams)
    package static let tokens = ConfigurationKeyPath.root.key(GatewayKey.tokens)

    func validate() {
        self.validatePresence()
        self.validateNames(self.configuration.listeners.map(\.name), in: Self.listeners, of: "listener")
        self.validateNames(self.configuration.routes.map(\.name), in: Self.routes, of: "route")
        self.validateNames(self.configuration.upstreams.map(\.name), in: Self.upstreams, of: "upstream")
        self.validateNames(self.configuration.tokens.map(\.name), in: Self.tokens, of: "entry of tokens")
        self.validateListeners()
        self.validateRoutes()
        self.validateUpstreams()
        self.validateHandshakes()
        self.validateRoomTokens()
        self.validateListenersHaveRoutes()
    }

    private func validatePresence() {
        if self.configuration.listeners.isEmpty, self.problems.isValid(Self.listeners) {
            self.problems.add(
                at: Self.listeners, expected: "at least one listener", remedy: "add listeners: with a name and listen")
        }
        if self.configuration.routes.isEmpty, self.problems.isValid(Self.routes) {
            self.problems.add(
                at: Self.routes, expected: "at least one route", remedy: "add routes: with a name, a path and a target")
        }
    }

    private func validateNames(_ names: [String], in list: ConfigurationKeyPath, of kind: String) {
        var first: [String: Int] = [:]
        for (index, name) in names.enumerated() where !name.isEmpty {
            if let earlier = first[name] {
                self.problems.add(
                    at: list.index(index).key("name"), expected: "a name that no other \(kind) has",
                    found: "\(QuotedText.quoted(name)), the name of \(list.index(earlier))", remedy: "choose another")
            } else {
                first[name] = index
            }
        }
    }

    /// Whether every name in `list` is valid, so that any other name is unknown for certain.
    private func areNamesKnown(_ count: Int, in list: ConfigurationKeyPath) -> Bool {
        self.problems.isValid(list)
            && (0..<count).allSatisfy { self.problems.isValid(list.index($0).key("name")) }
    }

    /// Reports a reference to an unknown name.
    private func reportUnknown(_ name: String, at path: ConfigurationKeyPath, among names: [String], kind: String) {
        let suggestion = EditDistance.nearest(to: name, among: names).map { "did you mean \($0)?" }
        let known = names.isEmpty ? "there is none" : "there are \(names.prefix(10).joined(separator: ", "))"
        self.problems.add(
            at: path, expected: "the name of \(kind)", found: QuotedText.quoted(name), remedy: suggestion ?? known)
    }

    // MARK: Listeners

    private func validateListeners() {
        let listeners = self.configuration.listeners
        for (index, listener) in listeners.enumerated() {
            let path = Self.listeners.index(index)
            let listen = path.key(ListenerKey.listen)
            if self.problems.isValid(listen), let conflict = self.conflictingListener(for: listener, before: index) {
                self.problems.add(
                    at: listen, expected: "an address that no other listener has",
                    found: "\(listener.address), taken by \(Self.listeners.index(conflict))",
                    remedy: "choose another port or address")
            }
            self.validateRoute(of: listener, at: path)
        }
        self.validateControlAddress()
    }

    /// Without a configured address, the gateway starts without a control plane instead.
    private func validateControlAddress() {
        let path = Self.control.key("address")
        guard self.configuration.control.isExplicit, self.problems.isValid(path),
            let address = self.configuration.control.address
        else { return }
        let listeners = self.configuration.listeners.enumerated()
        let conflict = listeners.first { index, listener in
            listener.address.overlaps(ListenAddress(address))
                && self.problems.isValid(Self.listeners.index(index).key(ListenerKey.listen))
        }
        guard let conflict else { return }
        self.problems.add(
            at: path, expected: "an address that no listener has",
            found: "\(address), taken by \(Self.listeners.index(conflict.offset))",
            remedy: "choose another port or address")
    }

    /// A `ws` or `wss` listener must have a route. Checked last, and only if the routes have no problem.
    private func validateListenersHaveRoutes() {
        guard !self.configuration.routes.isEmpty, !self.problems.hasProblem(within: Self.routes) else { return }
        for (index, listener) in self.configuration.listeners.enumerated() {
            let path = Self.listeners.index(index)
            guard listener.kind.speaksWebSocket, !listener.name.isEmpty,
                self.problems.isValid(path.key(ListenerKey.listen))
            else { continue }
            if !self.configuration.routes.contains(where: { self.configuration.serves($0, on: listener) }) {
                self.problems.add(
                    at: path, expected: "a route with a path for requests of this listener", found: "none",
                    remedy: "add a route with a path, or add \(listener.name) to the listeners of one")
            }
        }
    }

    /// The first earlier listener whose address overlaps.
    private func conflictingListener(for listener: ListenerConfiguration, before index: Int) -> Int? {
        self.configuration.listeners.prefix(index).enumerated().first { earlier, other in
            other.address.overlaps(listener.address)
                && self.problems.isValid(Self.listeners.index(earlier).key(ListenerKey.listen))
        }?.offset
    }

    /// Checks the route that a raw listener names.
    private func validateRoute(of listener: ListenerConfiguration, at listenerPath: ConfigurationKeyPath) {
        let path = listenerPath.key(ListenerKey.route)
        guard let name = listener.route, self.problems.isValid(path) else { return }
        let isRaw = !listener.kind.speaksWebSocket && self.problems.isValid(listenerPath.key(ListenerKey.listen))
        let routes = self.configuration.routes
        guard let route = self.configuration.route(named: name) else {
            if self.areNamesKnown(routes.count, in: Self.routes) {
                self.reportUnknown(name, at: path, among: routes.map(\.name), kind: "a route")
            }
            return
        }
        if isRaw, route.target.answersHTTP {
            self.problems.add(
                at: path, expected: "a route for raw connections",
                found: "\(QuotedText.quoted(name)), which answers plain HTTP requests",
                remedy: "begin listen with ws or wss, or name another route")
        }
        if isRaw, route.auth != nil {
            self.problems.add(
                at: path, expected: "a route without auth, as a raw connection has no request with a token",
                found: QuotedText.quoted(name), remedy: "add a separate route for this listener")
        }
        if isRaw, case .targets = route.target {
            self.problems.add(
                at: path, expected: "a route with one target, as a raw connection has no request that names one",
                found: "\(QuotedText.quoted(name)) with targets", remedy: "add a separate route for this listener")
        }
        let parameters = self.endpoints(of: route).flatMap(\.resource.parameters)
        if isRaw, let parameter = parameters.first {
            self.problems.add(
                at: path, expected: "a route whose target has no parameters, as a raw connection has no path",
                found: "\(QuotedText.quoted(name)) with {\(parameter)}",
                remedy: "add a separate route for this listener")
        }
    }

    // MARK: Routes

    private func validateRoutes() {
        for (index, route) in self.configuration.routes.enumerated() {
            let path = Self.routes.index(index)
            guard self.problems.isValid(path) else { continue }
            self.validateListeners(of: route, at: path)
            self.validateReachability(of: route, at: path)
            self.validateTarget(of: route, at: path)
            self.validateTargetOptions(of: route, at: path)
            self.validateAuthentication(of: route, at: path)
        }
        self.validateUniqueMatches()
    }

    /// Endpoints of the route's target; none for `echo`, `chat` and names without an upstream.
    private func endpoints(of route: RouteConfiguration) -> [EndpointURL] {
        self.configuration.upstream(of: route)?.endpoints.map(\.url) ?? []
    }

    private func validateListeners(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        let list = path.key(RouteKey.listeners)
        guard self.problems.isValid(list), self.areNamesKnown(self.configuration.listeners.count, in: Self.listeners)
        else { return }
        for (index, name) in route.listeners.enumerated() {
            guard let listener = self.configuration.listener(named: name) else {
                self.reportUnknown(
                    name, at: list.index(index), among: self.configuration.listeners.map(\.name), kind: "a listener")
                continue
            }
            if !listener.kind.speaksWebSocket, self.hasValidAddress(listener) {
                self.problems.add(
                    at: list.index(index), expected: "a ws or wss listener",
                    found: "\(QuotedText.quoted(name)), a \(listener.kind.rawValue) listener",
                    remedy: "set it as the route of that listener instead")
            }
        }
    }

    private func hasValidAddress(_ listener: ListenerConfiguration) -> Bool {
        guard let index = self.configuration.listeners.firstIndex(where: { $0.name == listener.name }) else {
            return false
        }
        return self.problems.isValid(Self.listeners.index(index).key(ListenerKey.listen))
    }

    /// A route that no connection can use is a mistake.
    private func validateReachability(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        let listeners = self.configuration.listeners
        let keyPath = path.key(RouteKey.path)
        guard !route.name.isEmpty, self.problems.isValid(keyPath), self.problems.isValid(Self.listeners) else { return }
        guard listeners.allSatisfy({ self.hasValidAddress($0) && $0.route != "" }) else { return }
        let isNamed = listeners.contains { $0.route == route.name }
        if route.path == nil {
            let requestKeys = [
                (RouteKey.host, route.host != nil), (.listeners, !route.listeners.isEmpty),
                (.origins, !route.origins.isEmpty), (.auth, route.auth != nil),
            ]
            for (key, isPresent) in requestKeys where isPresent {
                self.problems.add(
                    at: path.key(key),
                    expected: "no \(key.rawValue), as a route without a path serves no requests",
                    remedy: "add path: /… or leave it out")
            }
            if !isNamed {
                self.problems.add(
                    at: keyPath, expected: "a path, or a raw listener that names this route", found: "neither",
                    remedy: "add path: /…")
            }
        } else if !isNamed, route.listeners.isEmpty, !listeners.isEmpty,
            !listeners.contains(where: \.kind.speaksWebSocket)
        {
            self.problems.add(
                at: keyPath, expected: "a ws or wss listener for a route with a path", found: "none",
                remedy: "add one, or set the route at a raw listener")
        }
    }

    private func validateTarget(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        let keyPath = path.key(RouteKey.target)
        guard self.problems.isValid(keyPath) else { return }
        switch route.target {
        case .targets, .echo, .chat, .rooms, .files, .page, .roomEvents: return
        case .upstream(let name):
            let upstreams = self.configuration.upstreams
            if self.configuration.upstream(named: name) == nil, self.areNamesKnown(upstreams.count, in: Self.upstreams)
            {
                self.reportUnknown(
                    name, at: keyPath, among: upstreams.map(\.name) + RouteTarget.words,
                    kind: "an upstream, echo, chat, rooms or a URL")
            }
        case .url(let url):
            if url.scheme.speaksTLS, url.hostName == nil {
                self.problems.add(
                    at: keyPath, expected: "an upstream with a server name to verify",
                    found: QuotedText.quoted("\(url)"),
                    remedy: "define an upstream with tls: and server-name, and name it here")
            }
        }
        self.validateParameters(of: route, at: path)
    }

    /// Each parameter of the target must be one of the route's path.
    private func validateParameters(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        guard self.problems.isValid(path.key(RouteKey.path)) else { return }
        let known = route.path?.parameters ?? []
        for name in self.endpoints(of: route).flatMap(\.resource.parameters) where !known.contains(name) {
            if ClaimParameter.claim(of: name) != nil {
                guard route.auth == nil else { continue }
                return self.reportClaim(name, at: path.key(RouteKey.target))
            }
            self.problems.add(
                at: path.key(RouteKey.target), expected: "only parameters of the route's path", found: "{\(name)}",
                remedy: known.isEmpty ? "add it to the path" : "there are \(known.joined(separator: ", "))")
            return
        }
    }

    private func reportClaim(_ name: String, at path: ConfigurationKeyPath) {
        self.problems.add(
            at: path, expected: "no claims, as the route has no auth", found: "{\(name)}",
            remedy: "add auth: with an entry of tokens")
    }

    private func validateAuthentication(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        guard let auth = route.auth else {
            let headers = path.key(RouteKey.headers)
            for header in route.headers where self.problems.isValid(headers) {
                guard let claim = ClaimTemplate(header.value).claims.first else { continue }
                self.reportClaim(
                    ClaimParameter.prefix + claim,
                    at: self.headerPath(of: header.name, among: route.headers, at: headers))
            }
            return
        }
        let named = path.key(RouteKey.auth).key(RouteAuthKey.tokens)
        let place = self.problems.isPresent(named) ? named : path.key(RouteKey.auth)
        self.validateTokens(named: auth.tokens, at: place)
    }

    private func validateRoomTokens() {
        guard let name = self.configuration.rooms.tokens else { return }
        self.validateTokens(
            named: name, at: ConfigurationKeyPath.root.key(GatewayKey.rooms).key(RoomKey.tokens))
    }

    private func validateTokens(named name: String, at path: ConfigurationKeyPath) {
        let entries = self.configuration.tokens
        guard self.problems.isValid(path), !entries.contains(where: { $0.name == name }),
            self.areNamesKnown(entries.count, in: Self.tokens)
        else { return }
        self.reportUnknown(name, at: path, among: entries.map(\.name), kind: "an entry of tokens")
    }

    /// Checks options that need a certain kind of target.
    private func validateTargetOptions(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        guard self.problems.isValid(path.key(RouteKey.target)) else { return }
        // One that answers plain HTTP refuses such options itself.
        guard !route.target.answersHTTP else { return }
        let isBuiltIn = route.target.isBuiltIn
        if route.proxyProtocol != nil, isBuiltIn {
            self.problems.add(
                at: path.key(RouteKey.proxyProtocol), expected: "no PROXY header, as the route has no upstream",
                remedy: "leave it out")
        }
        guard let upstream = self.configuration.upstream(of: route) else {
            // An upstream of an unknown name is reported already.
            if case .upstream = route.target { return }
            if !route.headers.isEmpty { self.reportHeaders(at: path) }
            return
        }
        if !route.headers.isEmpty, !upstream.endpoints.isEmpty, !upstream.speaksWebSocket {
            self.reportHeaders(at: path)
        }
    }

    private func reportHeaders(at path: ConfigurationKeyPath) {
        self.problems.add(
            at: path.key(RouteKey.headers), expected: "no headers, as the target is no WebSocket",
            remedy: "leave them out")
    }

    // MARK: Upstreams

    private func validateUpstreams() {
        for (index, upstream) in self.configuration.upstreams.enumerated() {
            let path = Self.upstreams.index(index)
            if RouteTarget.words.contains(upstream.name), self.problems.isValid(path.key("name")) {
                self.problems.add(
                    at: path.key("name"), expected: "a name that is no kind of target",
                    found: QuotedText.quoted(upstream.name), remedy: "choose another: no route could name it")
            }
            guard self.areEndpointsValid(of: upstream, at: path) else { continue }
            self.validateEndpointKinds(of: upstream, at: path)
            self.validateTLS(of: upstream, at: path)
            if !upstream.subprotocols.isEmpty, !upstream.speaksWebSocket {
                self.problems.add(
                    at: path.key(UpstreamKey.subprotocols), expected: "no subprotocols, as no endpoint is a WebSocket",
                    remedy: "leave them out, or begin the endpoints with ws or wss")
            }
        }
    }

    private func areEndpointsValid(of upstream: UpstreamConfiguration, at path: ConfigurationKeyPath) -> Bool {
        let list = path.key(UpstreamKey.endpoints)
        return !upstream.endpoints.isEmpty && self.problems.isValid(list)
            && upstream.endpoints.indices.allSatisfy {
                self.problems.isValid(list.index($0)) && self.problems.isValid(list.index($0).key(EndpointKey.url))
            }
    }

    private func validateEndpointKinds(of upstream: UpstreamConfiguration, at path: ConfigurationKeyPath) {
        guard
            let odd = upstream.endpoints.firstIndex(where: { $0.url.scheme.speaksWebSocket != upstream.speaksWebSocket }
            )
        else { return }
        self.problems.add(
            at: path.key(UpstreamKey.endpoints).index(odd),
            expected: upstream.speaksWebSocket
                ? "a ws or wss URL like the others" : "a tcp, tls or unix URL like the others",
            remedy: "make two upstreams")
    }

    private func validateTLS(of upstream: UpstreamConfiguration, at path: ConfigurationKeyPath) {
        let tls = path.key(UpstreamKey.tls)
        guard self.problems.isValid(tls) else { return }
        let encrypted = upstream.endpoints.filter(\.url.scheme.speaksTLS)
        if encrypted.isEmpty, upstream.tls != ClientTLSSettings() {
            self.problems.add(
                at: tls, expected: "no tls, as no endpoint begins with tls or wss",
                remedy: "leave it out, or begin the endpoints with tls or wss")
        }
        let needsName = encrypted.contains { $0.url.hostName == nil }
        if needsName, upstream.tls.serverName == nil, upstream.tls.verifies {
            self.problems.add(
                at: tls.key(ClientTLSKey.serverName), expected: "the server name to verify over a Unix socket",
                found: "nothing",
                remedy: "give a server name")
        }
    }

    // MARK: Opening handshakes

    /// The header fields towards WebSocket upstreams must be valid; otherwise each opening handshake would fail.
    private func validateHandshakes() {
        for (index, route) in self.configuration.routes.enumerated() {
            let path = Self.routes.index(index)
            guard [path, path.key(RouteKey.headers), path.key(RouteKey.target)].allSatisfy(self.problems.isValid),
                let upstream = self.configuration.upstream(of: route), upstream.speaksWebSocket
            else { continue }
            for endpoint in upstream.endpoints where endpoint.url.scheme.speaksWebSocket {
                do throws(HandshakeUsageError) {
                    try Self.handshake(upstream, endpoint: endpoint.url, route: route).validate()
                } catch {
                    self.report(error, of: route, at: path)
                    break
                }
            }
        }
    }

    /// The opening handshake of a route towards `endpoint`; each path parameter has its name as value.
    private static func handshake(
        _ upstream: UpstreamConfiguration, endpoint: EndpointURL, route: RouteConfiguration
    ) -> ClientHandshake {
        let names = endpoint.resource.parameters
        let parameters = Dictionary(names.map { ($0, $0) }, uniquingKeysWith: { first, _ in first })
        return ClientHandshake(
            authority: endpoint.authority, target: endpoint.resource.resource(parameters: parameters, query: nil),
            subprotocols: upstream.subprotocols(of: route),
            fields: route.headers.map { HTTPField($0.name, $0.value) })
    }

    private func report(_ error: HandshakeUsageError, of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        switch error {
        case .malformedField(let field):
            self.problems.add(
                at: self.headerPath(of: field.name, among: route.headers, at: path.key(RouteKey.headers)),
                expected: "a header on one line, its value without leading and trailing spaces",
                remedy: "remove them")
        case .reservedField(let name):
            self.problems.add(
                at: self.headerPath(of: name, among: route.headers, at: path.key(RouteKey.headers)),
                expected: "a header that the gateway does not write itself", remedy: "leave out \(name)")
        case .malformedSubprotocol(let name), .repeatedSubprotocol(let name):
            self.problems.add(
                at: path.key(RouteKey.subprotocols), expected: "subprotocols that can be offered, each once",
                found: QuotedText.quoted(name))
        case .subprotocolsGivenTwice:
            self.problems.add(
                at: path.key(RouteKey.headers), expected: "no Sec-WebSocket-Protocol beside subprotocols",
                remedy: "leave out one of the two")
        case .malformedAuthority(let text), .malformedTarget(let text):
            self.problems.add(
                at: path.key(RouteKey.target), expected: "a valid host and path for requests",
                found: QuotedText.quoted(text))
        case .malformedOffer:
            self.problems.add(at: path.key(RouteKey.compress), expected: "a window of 8 to 15 bits")
        }
    }

    /// Path of a header in the mapping of names or in the list of lines.
    private func headerPath(
        of name: String, among headers: [ExtraHeader], at list: ConfigurationKeyPath
    ) -> ConfigurationKeyPath {
        let named = list.key(QuotedText.shortened(name))
        if self.problems.isPresent(named) { return named }
        return headers.lastIndex { $0.name == name }.map { list.index($0) } ?? list
    }

    // MARK: Unique matches

    /// Host and path that a route matches.
    private struct RouteMatch: Hashable {
        let host: HostPattern?
        let shape: PathPattern
        /// Plain requests and WebSockets may have the same path.
        let answersHTTP: Bool
    }

    /// Of two routes that match the same requests, the second would never be used.
    private func validateUniqueMatches() {
        var matches: [RouteMatch: [Int]] = [:]
        for (index, route) in self.configuration.routes.enumerated() {
            let path = Self.routes.index(index)
            guard let pattern = route.path,
                [RouteKey.path, .host, .listeners].allSatisfy({ self.problems.isValid(path.key($0)) })
            else { continue }
            let match = RouteMatch(
                host: route.host, shape: pattern.shape, answersHTTP: route.target.answersHTTP)
            let earlier = matches[match, default: []]
            if let conflict = earlier.first(where: { self.shareListener(self.configuration.routes[$0], route) }) {
                self.problems.add(
                    at: path.key(RouteKey.path), expected: "a host and path that no other route has",
                    found: "\(route.host.map { "\($0)" } ?? "")\(pattern), as in \(Self.routes.index(conflict))",
                    remedy: "change one of them")
            }
            matches[match] = earlier + [index]
        }
    }

    private func shareListener(_ one: RouteConfiguration, _ other: RouteConfiguration) -> Bool {
        one.listeners.isEmpty || other.listeners.isEmpty || !Set(one.listeners).isDisjoint(with: other.listeners)
    }
}
