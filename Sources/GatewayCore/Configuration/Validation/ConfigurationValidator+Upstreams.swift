extension ConfigurationValidator {
    func validateUpstreams() {
        for (index, upstream) in self.configuration.upstreams.enumerated() {
            let path = Self.upstreams.index(index)
            guard self.areEndpointsSound(of: upstream, at: path) else { continue }
            self.validateMixture(of: upstream, at: path)
            self.validateTLS(of: upstream, at: path)
            if !upstream.subprotocols.isEmpty, !upstream.speaksWebSocket {
                self.problems.add(
                    at: path.key(UpstreamKey.subprotocols), expected: "no subprotocols, as no endpoint is a WebSocket",
                    remedy: "leave them out, or begin the endpoints with ws or wss")
            }
        }
    }

    private func areEndpointsSound(of upstream: UpstreamConfiguration, at path: ConfigurationKeyPath) -> Bool {
        let list = path.key(UpstreamKey.endpoints)
        return !upstream.endpoints.isEmpty && self.problems.isSound(list)
            && upstream.endpoints.indices.allSatisfy {
                self.problems.isSound(list.index($0)) && self.problems.isSound(list.index($0).key(EndpointKey.url))
            }
    }

    private func validateMixture(of upstream: UpstreamConfiguration, at path: ConfigurationKeyPath) {
        let odd = upstream.endpoints.firstIndex { $0.url.scheme.speaksWebSocket != upstream.speaksWebSocket }
        guard let odd else { return }
        self.problems.add(
            at: path.key(UpstreamKey.endpoints).index(odd),
            expected: upstream.speaksWebSocket
                ? "a ws or wss URL like the others" : "a tcp, tls or unix URL like the others",
            remedy: "make two upstreams")
    }

    private func validateTLS(of upstream: UpstreamConfiguration, at path: ConfigurationKeyPath) {
        let tls = path.key(UpstreamKey.tls)
        guard self.problems.isSound(tls) else { return }
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
}
