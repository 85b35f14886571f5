extension ListenerLimits {
    init(reading section: SectionReader<ListenerKey>) {
        self.init()
        section.read(.maxConnections, into: &self.maximumConnections, as: .integer(1...10_000_000))
        section.read(.maxConnectionsPerClient, into: &self.maximumConnectionsPerClient, as: .integer(1...10_000_000))
        section.read(
            .handshakeTimeout, into: &self.handshakeTimeout, as: .duration(.milliseconds(100) ... .seconds(600)))
        section.read(.maxTLSHandshakes, into: &self.maximumHandshakes, as: .integer(1...1_000_000))
        section.read(.maxTLSHandshakeSize, into: &self.maximumHandshakeSize, as: .size(4096...1_048_576))
        section.read(.maxHeaderSize, into: &self.maximumHeaderSize, as: .size(1024...1_048_576))
        section.read(.maxHeaderCount, into: &self.maximumHeaderCount, as: .integer(8...10_000))
        if let rate = section.value(.acceptRate, as: .rate(1...10_000_000)) {
            self.acceptRate = AcceptRate(perSecond: rate, burst: rate)
        }
        section.read(.acceptBurst, into: &self.acceptRate.burst, as: .integer(1...10_000_000))
    }
}
