extension TunnelSettings {
    /// - Parameter target: where the route leads, as far as that could be read.
    init(reading section: SectionReader<RouteKey>, target: RouteTarget?) {
        self.init()
        section.read(.framing, into: &self.framing, as: .choice)
        section.read(.halfClose, into: &self.halfClose, as: .choice)
        if self.halfClose == .signal, !self.framing.canMarkEnd {
            section.add(
                .halfClose,
                expected: "hold or close, as an empty message is data in \(self.framing.rawValue) framing "
                    + "and cannot mark an end",
                remedy: "choose one of them, or another framing")
        }
        section.read(.keepFragmentation, into: &self.keepsFragmentation, as: .boolean)
        section.readOrNone(.pingInterval, into: &self.pingInterval, as: .duration(.seconds(1) ... .seconds(86_400)))
        section.read(.pongTimeout, into: &self.pongTimeout, as: .duration(.seconds(1) ... .seconds(3600)))
        section.readOrNone(.idleTimeout, into: &self.idleTimeout, as: .duration(.lifetime))
        section.readOrNone(.maxAge, into: &self.maximumAge, as: .duration(.lifetime))
        self.compression = CompressionPolicy.read(section)
        self.buffer = BufferWatermarks(reading: section)
        self.keepAlive = KeepAliveSettings(reading: section.section(.keepAlive))
        section.readOrNone(
            .userTimeout, into: &self.keepAlive.userTimeout, as: .duration(.seconds(1) ... .seconds(86_400)))
        self.readMessageSize(section, target: target)
    }

    /// Whoever must put messages together needs a bound, and four bytes of length set one of their own.
    private mutating func readMessageSize(_ section: SectionReader<RouteKey>, target: RouteTarget?) {
        let isAssembled = target == .echo || target == .chat || self.framing == .lengthPrefixed
        guard isAssembled else {
            section.readOrNone(.maxMessageSize, into: &self.maximumMessageSize, as: .size(1...(1 << 53)))
            return
        }
        self.maximumMessageSize = Self.assembledMessageSize
        section.readOptional(.maxMessageSize, into: &self.maximumMessageSize, as: .size(1...(1 << 30)))
    }
}
