extension DrainSettings {
    init(reading section: SectionReader<GatewayKey>) {
        self.init()
        section.read(.drainTimeout, into: &self.timeout, as: .duration(.day))
        self.closeSpread = min(self.closeSpread, self.timeout)
        section.read(.closeSpread, into: &self.closeSpread, as: .duration(.day))
        if self.closeSpread > self.timeout {
            section.add(
                .closeSpread, expected: "at most the drain timeout of \(DurationText(self.timeout))",
                remedy: "after that time connections are cut")
        }
    }
}
