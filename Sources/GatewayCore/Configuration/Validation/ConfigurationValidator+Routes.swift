extension ConfigurationValidator {
    func validateRoutes() {
        for (index, route) in self.configuration.routes.enumerated() {
            let path = Self.routes.index(index)
            guard self.problems.isSound(path) else { continue }
            self.validateListeners(of: route, at: path)
            self.validateReach(of: route, at: path)
            self.validateTarget(of: route, at: path)
            self.validateExtras(of: route, at: path)
        }
        self.validateDistinctness()
    }

    /// What the target's connections are opened to; none for `echo`, `chat` and names without an upstream.
    func endpoints(of route: RouteConfiguration) -> [EndpointURL] {
        self.configuration.upstream(of: route)?.endpoints.map(\.url) ?? []
    }

    private func validateListeners(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        let list = path.key(RouteKey.listeners)
        guard self.problems.isSound(list), self.areNamesKnown(self.configuration.listeners.count, in: Self.listeners)
        else {
            return
        }
        for (index, name) in route.listeners.enumerated() {
            guard let listener = self.configuration.listener(named: name) else {
                self.reportUnknown(
                    name, at: list.index(index), among: self.configuration.listeners.map(\.name), kind: "a listener")
                continue
            }
            if !listener.kind.speaksWebSocket, self.isLegible(listener) {
                self.problems.add(
                    at: list.index(index), expected: "a ws or wss listener",
                    found: "\(QuotedText.quoted(name)), a \(listener.kind.rawValue) listener",
                    remedy: "name the route at that listener instead")
            }
        }
    }

    private func isLegible(_ listener: ListenerConfiguration) -> Bool {
        guard let index = self.configuration.listeners.firstIndex(where: { $0.name == listener.name }) else {
            return false
        }
        return self.problems.isSound(Self.listeners.index(index).key(ListenerKey.listen))
    }

    /// A route that no connection can take is a mistake.
    private func validateReach(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        let listeners = self.configuration.listeners
        let place = path.key(RouteKey.path)
        guard !route.name.isEmpty, self.problems.isSound(place), self.problems.isSound(Self.listeners) else { return }
        guard listeners.allSatisfy({ self.isLegible($0) && $0.route != "" }) else { return }
        let isNamed = listeners.contains { $0.route == route.name }
        if route.path == nil {
            let needy = [
                (RouteKey.host, route.host != nil), (.listeners, !route.listeners.isEmpty),
                (.origins, !route.origins.isEmpty),
            ]
            for (key, isGiven) in needy where isGiven {
                self.problems.add(
                    at: path.key(key),
                    expected: "no \(key.rawValue), as the route has no path that requests could ask for",
                    remedy: "add path: /… or leave it out")
            }
            if !isNamed {
                self.problems.add(
                    at: place, expected: "a path, or a raw listener that names this route", found: "neither",
                    remedy: "add path: /…")
            }
        } else if !isNamed, route.listeners.isEmpty, !listeners.isEmpty,
            !listeners.contains(where: \.kind.speaksWebSocket)
        {
            self.problems.add(
                at: place, expected: "a ws or wss listener for a route with a path", found: "none",
                remedy: "add one, or name the route at a raw listener")
        }
    }

    private func validateTarget(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        let place = path.key(RouteKey.target)
        guard self.problems.isSound(place) else { return }
        switch route.target {
        case .echo, .chat: return
        case .upstream(let name):
            let upstreams = self.configuration.upstreams
            if self.configuration.upstream(named: name) == nil, self.areNamesKnown(upstreams.count, in: Self.upstreams)
            {
                self.reportUnknown(
                    name, at: place, among: upstreams.map(\.name) + ["echo", "chat"],
                    kind: "an upstream, echo, chat or a URL")
            }
        case .url(let url):
            if url.scheme.speaksTLS, url.hostName == nil {
                self.problems.add(
                    at: place, expected: "an upstream with a server name to verify", found: QuotedText.quoted("\(url)"),
                    remedy: "make an upstream of it with tls: and server-name, and name that here")
            }
        }
        self.validateParameters(of: route, at: path)
    }

    /// Parameters in the target come from the route's path.
    private func validateParameters(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        guard self.problems.isSound(path.key(RouteKey.path)) else { return }
        let known = route.path?.parameters ?? []
        for name in self.endpoints(of: route).flatMap(\.resource.parameters) where !known.contains(name) {
            self.problems.add(
                at: path.key(RouteKey.target), expected: "only parameters of the route's path", found: "{\(name)}",
                remedy: known.isEmpty ? "add it to the path" : "there are \(known.joined(separator: ", "))")
            return
        }
    }

    /// Options that need a target of a certain kind.
    private func validateExtras(of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        guard self.problems.isSound(path.key(RouteKey.target)) else { return }
        let isBuiltIn = route.target == .echo || route.target == .chat
        if route.proxyProtocol != nil, isBuiltIn {
            self.problems.add(
                at: path.key(RouteKey.proxyProtocol), expected: "no PROXY header, as the route has no upstream",
                remedy: "leave it out")
        }
        guard let upstream = self.configuration.upstream(of: route) else {
            if !route.headers.isEmpty, isBuiltIn { self.reportHeaders(at: path) }
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
}
