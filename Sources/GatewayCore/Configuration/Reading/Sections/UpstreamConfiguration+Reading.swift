extension UpstreamConfiguration {
    init(reading section: SectionReader<UpstreamKey>) {
        let name = section.required(.name, as: .name)
        self.init(name: name ?? "", endpoints: [])
        if name == "echo" || name == "chat" || name == "none" {
            section.add(.name, expected: "a name that no target has already", remedy: "choose another")
        }
        self.readEndpoints(section)
        section.read(.policy, into: &self.policy, as: .choice)
        section.read(.connectTimeout, into: &self.connectTimeout, as: .duration(.attempt))
        section.read(.handshakeTimeout, into: &self.handshakeTimeout, as: .duration(.attempt))
        section.readOrNone(.ejectFailures, into: &self.ejection.failures, as: .integer(1...1000))
        section.read(
            .ejectDuration, into: &self.ejection.duration, as: .duration(.milliseconds(100) ... .seconds(86_400)))
        section.readList(.subprotocols, into: &self.subprotocols, as: .subprotocol)
        self.retry = RetryPolicy(reading: section)
        if let tls = section.section(.tls, keys: ClientTLSKey.self) { self.tls = ClientTLSSettings(reading: tls) }
    }

    /// A list of URLs, or of mappings with `url` and `weight`; or one URL.
    private mutating func readEndpoints(_ section: SectionReader<UpstreamKey>) {
        if let node = section.node(.endpoints), case .scalar = node.content {
            self.endpoints = [UpstreamEndpoint(url: section.value(.endpoints, as: .endpointURL) ?? .placeholder)]
            return
        }
        let elements = section.elements(.endpoints)
        if elements.isEmpty, section.problems.isSound(section.path(.endpoints)) {
            section.add(
                .endpoints, expected: "at least one endpoint", remedy: "write it like endpoints: [tcp://127.0.0.1:5900]"
            )
        }
        self.endpoints = elements.map { UpstreamEndpoint(reading: $0.node, at: $0.path, problems: section.problems) }
    }
}
