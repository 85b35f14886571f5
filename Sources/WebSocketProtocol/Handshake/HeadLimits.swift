/// How much of a head is read before it is refused.
public struct HeadLimits: Equatable, Sendable {
    /// Most bytes, the empty line at the end included. Default: 16 KiB.
    public var byteCount: Int
    /// Most field lines. Default: 100.
    public var fieldCount: Int

    /// Negative limits count as 0, which no head can keep.
    public init(byteCount: Int = 16384, fieldCount: Int = 100) {
        self.byteCount = max(byteCount, 0)
        self.fieldCount = max(fieldCount, 0)
    }
}
