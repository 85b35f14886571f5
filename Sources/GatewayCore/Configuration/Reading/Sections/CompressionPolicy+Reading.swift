extension CompressionPolicy {
    /// `true`, `false`, or a mapping, which turns it on.
    static func read(_ section: SectionReader<RouteKey>) -> CompressionPolicy? {
        switch section.valueOrSection(.compress, as: .boolean, keys: CompressionKey.self) {
        case nil: nil
        case .value(let isOn)?: isOn == true ? CompressionPolicy() : nil
        case .section(let inner)?: CompressionPolicy(reading: inner)
        }
    }

    private init(reading section: SectionReader<CompressionKey>) {
        self.init()
        section.read(.level, into: &self.level, as: .integer(1...9))
        section.read(.minSize, into: &self.minimumSize, as: .size(0...1_048_576))
        section.read(.contextTakeover, into: &self.keepsContext, as: .boolean)
        section.read(.windowBits, into: &self.windowBits, as: .integer(9...15))
    }
}
