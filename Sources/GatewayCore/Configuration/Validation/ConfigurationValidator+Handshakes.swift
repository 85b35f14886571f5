import WebSocketProtocol

extension ConfigurationValidator {
    /// What a route asks of its WebSocket upstream must be fit to be sent: it would otherwise be left out of each
    /// opening handshake.
    func validateHandshakes() {
        for (index, route) in self.configuration.routes.enumerated() {
            let path = Self.routes.index(index)
            guard [path, path.key(RouteKey.headers), path.key(RouteKey.target)].allSatisfy(self.problems.isSound),
                let upstream = self.configuration.upstream(of: route), upstream.speaksWebSocket
            else { continue }
            for endpoint in upstream.endpoints where endpoint.url.scheme.speaksWebSocket {
                do throws(HandshakeUsageError) {
                    try UpstreamRequest.standing(upstream, endpoint: endpoint.url, route: route).validate()
                } catch {
                    self.report(error, of: route, at: path)
                    break
                }
            }
        }
    }

    private func report(_ error: HandshakeUsageError, of route: RouteConfiguration, at path: ConfigurationKeyPath) {
        switch error {
        case .malformedField(let field):
            self.problems.add(
                at: self.place(of: field.name, among: route.headers, at: path.key(RouteKey.headers)),
                expected: "a header that fits into one line, its value without spaces at its ends",
                remedy: "take them away")
        case .reservedField(let name):
            self.problems.add(
                at: self.place(of: name, among: route.headers, at: path.key(RouteKey.headers)),
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
                at: path.key(RouteKey.target), expected: "a host and a path that can be asked for",
                found: QuotedText.quoted(text))
        case .malformedOffer:
            self.problems.add(at: path.key(RouteKey.compress), expected: "a window of 8 to 15 bits")
        }
    }

    /// A header's place in the mapping of names or in the list of lines, whichever was written.
    private func place(
        of name: String, among headers: [ExtraHeader], at list: ConfigurationKeyPath
    ) -> ConfigurationKeyPath {
        let named = list.key(QuotedText.shortened(name))
        if self.problems.isWritten(named) { return named }
        return headers.lastIndex { $0.name == name }.map { list.index($0) } ?? list
    }
}
