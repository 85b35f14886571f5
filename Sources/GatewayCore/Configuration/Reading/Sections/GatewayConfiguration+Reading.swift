extension GatewayConfiguration {
    /// Reads the top of a document. Entries that are wrong stay in their places, so that indices agree with the
    /// document.
    init(reading section: SectionReader<GatewayKey>) {
        self.init(
            listeners: section.elements(.listeners).map {
                ListenerConfiguration(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            },
            routes: section.elements(.routes).map {
                RouteConfiguration(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            },
            upstreams: section.elements(.upstreams).map {
                UpstreamConfiguration(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            })
        if let control = section.section(.control, keys: ControlKey.self) {
            self.control = ControlSettings(reading: control)
        }
        section.read(.maxConnections, into: &self.maximumConnections, as: .integer(1...10_000_000))
        section.readOptional(.loops, into: &self.loops, as: .integer(1...1024))
        section.read(.logFormat, into: &self.log.format, as: .choice)
        section.read(.logLevel, into: &self.log.level, as: .choice)
        self.drain = DrainSettings(reading: section)
    }
}
