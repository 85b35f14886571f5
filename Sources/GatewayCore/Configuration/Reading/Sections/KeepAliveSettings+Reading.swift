extension KeepAliveSettings {
    /// - Parameter section: `nil` where nothing was written.
    init(reading section: SectionReader<KeepAliveKey>?) {
        self.init()
        guard let section else { return }
        section.readOrNone(.idle, into: &self.idle, as: .duration(.probing))
        section.read(.interval, into: &self.interval, as: .duration(.probing))
        section.read(.probes, into: &self.probes, as: .integer(1...127))
    }
}
