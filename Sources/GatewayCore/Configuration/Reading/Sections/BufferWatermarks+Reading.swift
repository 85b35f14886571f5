extension BufferWatermarks {
    private static let range = 4096...67_108_864

    /// A size alone is the high watermark, and a quarter of it the low one.
    init(reading section: SectionReader<RouteKey>) {
        self.init()
        switch section.valueOrSection(.buffer, as: .size(Self.range), keys: BufferKey.self) {
        case nil: return
        case .value(let size)?:
            self.high = size ?? self.high
            self.low = self.high / 4
        case .section(let inner)?: self.read(inner)
        }
    }

    private mutating func read(_ inner: SectionReader<BufferKey>) {
        inner.read(.high, into: &self.high, as: .size(Self.range))
        self.low = self.high / 4
        inner.read(.low, into: &self.low, as: .size(0...67_108_863))
        if self.low >= self.high {
            inner.add(.low, expected: "less than the high watermark of \(SizeText(self.high))")
        }
    }
}
