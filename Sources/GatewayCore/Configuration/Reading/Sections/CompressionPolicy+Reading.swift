extension CompressionPolicy {
    /// `true`, `false`, or a mapping, which turns it on.
    static func read(_ section: SectionReader<RouteKey>) -> CompressionPolicy? {
        guard let node = section.node(.compress) else { return nil }
        guard case .mapping = node.content else {
            return section.value(.compress, as: .boolean) == true ? CompressionPolicy() : nil
        }
        return section.section(.compress).map { CompressionPolicy(reading: $0) }
    }

    private init(reading section: SectionReader<CompressionKey>) {
        self.init()
        section.read(.level, into: &self.level, as: .integer(1...9))
        section.read(.minSize, into: &self.minimumSize, as: .size(0...1_048_576))
        section.read(.contextTakeover, into: &self.keepsContext, as: .boolean)
        section.read(.windowBits, into: &self.windowBits, as: .integer(9...15))
    }
}
