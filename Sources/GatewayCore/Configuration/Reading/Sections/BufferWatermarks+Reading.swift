extension BufferWatermarks {
    private static let range = 4096...67_108_864

    /// A size alone is the high watermark, and a quarter of it the low one.
    init(reading section: SectionReader<RouteKey>) {
        self.init()
        guard let node = section.node(.buffer) else { return }
        guard case .mapping = node.content else {
            section.read(.buffer, into: &self.high, as: .size(Self.range))
            self.low = self.high / 4
            return
        }
        guard let inner = section.section(.buffer, keys: BufferKey.self) else { return }
        inner.read(.high, into: &self.high, as: .size(Self.range))
        self.low = self.high / 4
        inner.read(.low, into: &self.low, as: .size(0...67_108_863))
        if self.low >= self.high {
            inner.add(.low, expected: "less than the high watermark of \(SizeText(self.high))")
        }
    }
}
