extension ConfigurationValidator {
    func validateListeners() {
        let listeners = self.configuration.listeners
        for (index, listener) in listeners.enumerated() {
            let path = Self.listeners.index(index)
            let listen = path.key(ListenerKey.listen)
            if self.problems.isSound(listen), let rival = self.rival(of: listener, before: index) {
                self.problems.add(
                    at: listen, expected: "an address that no other listener has",
                    found: "\(listener.address), taken by \(Self.listeners.index(rival))",
                    remedy: "choose another port or address")
            }
            self.validateRoute(of: listener, at: path.key(ListenerKey.route))
        }
    }

    /// Listeners for requests must have a route to give them to. Told last, and only when nothing is wrong with the
    /// routes.
    func validateRequests() {
        guard !self.configuration.routes.isEmpty, !self.problems.hasFlaw(within: Self.routes) else { return }
        for (index, listener) in self.configuration.listeners.enumerated() {
            let path = Self.listeners.index(index)
            guard listener.kind.speaksWebSocket, !listener.name.isEmpty,
                self.problems.isSound(path.key(ListenerKey.listen))
            else {
                continue
            }
            if !self.configuration.routes.contains(where: { self.configuration.serves($0, on: listener) }) {
                self.problems.add(
                    at: path, expected: "a route with a path for requests of this listener", found: "none",
                    remedy: "add a route with a path, or add \(listener.name) to the listeners of one")
            }
        }
    }

    /// The first earlier listener whose address takes the same connections.
    private func rival(of listener: ListenerConfiguration, before index: Int) -> Int? {
        self.configuration.listeners.prefix(index).enumerated().first { earlier, other in
            other.address.overlaps(listener.address)
                && self.problems.isSound(Self.listeners.index(earlier).key(ListenerKey.listen))
        }?.offset
    }

    /// The route of a raw listener.
    private func validateRoute(of listener: ListenerConfiguration, at path: ConfigurationKeyPath) {
        guard let name = listener.route, self.problems.isSound(path) else { return }
        let routes = self.configuration.routes
        guard let route = self.configuration.route(named: name) else {
            if self.areNamesKnown(routes.count, in: Self.routes) {
                self.reportUnknown(name, at: path, among: routes.map(\.name), kind: "a route")
            }
            return
        }
        let parameters = self.endpoints(of: route).flatMap(\.resource.parameters)
        if !listener.kind.speaksWebSocket, let parameter = parameters.first {
            self.problems.add(
                at: path, expected: "a route whose target has no parameters, as a raw connection has no path",
                found: "\(QuotedText.quoted(name)) with {\(parameter)}",
                remedy: "make a route of its own for this listener")
        }
    }
}
