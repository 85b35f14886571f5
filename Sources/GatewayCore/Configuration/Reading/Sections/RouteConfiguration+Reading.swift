extension RouteConfiguration {
    init(reading section: SectionReader<RouteKey>) {
        let name = section.required(.name, as: .name)
        let target = section.required(.target, as: .routeTarget)
        self.init(name: name ?? "", path: section.value(.path, as: .pathPattern), target: target ?? .echo)
        section.readList(.listeners, into: &self.listeners, as: .name)
        section.refuseEmptyList(
            .listeners, expected: "at least one listener", remedy: "leave it out to mean all ws and wss listeners")
        section.readOptional(.host, into: &self.host, as: .hostPattern)
        section.readList(.origins, into: &self.origins, as: .originPattern)
        section.refuseEmptyList(
            .origins, expected: "at least one origin", remedy: "leave it out or write \"*\" to let all pages pass")
        section.readList(.subprotocols, into: &self.subprotocols, as: .subprotocol)
        section.read(.passQuery, into: &self.passesQuery, as: .boolean)
        section.readOptional(.proxyProtocol, into: &self.proxyProtocol, as: .choice)
        self.readHeaders(section)
        self.tunnel = TunnelSettings(reading: section, target: target)
    }

    /// A mapping of names and values, or a list of `Name: value`.
    private mutating func readHeaders(_ section: SectionReader<RouteKey>) {
        section.declareMap(.headers, as: ValueSyntax<String>.text)
        section.declareList(.headers, as: .headerLine)
        guard let node = section.node(.headers) else { return }
        let path = section.path(.headers)
        switch node.content {
        case .mapping(let entries):
            for entry in entries {
                let place = path.key(QuotedText.shortened(entry.key))
                let header = section.parse(
                    entry.value, at: place,
                    as: ValueSyntax { value throws(TextFault) in try ExtraHeader(checking: entry.key, value: value) })
                if let header { self.headers.append(header) }
            }
        case .sequence(let nodes):
            for (index, node) in nodes.enumerated() {
                if let header = section.parse(node, at: path.index(index), as: .headerLine) {
                    self.headers.append(header)
                }
            }
        case .empty, .scalar:
            section.add(.headers, expected: "a mapping of header names and values")
        }
    }
}
