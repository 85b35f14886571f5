/// Lines out of single bytes.
@usableFromInline
struct LineSplitter {
    @usableFromInline var line: [UInt8] = []
    /// Bytes at the end of `line` that may belong to a line end of several bytes.
    @usableFromInline var held = 0

    @inlinable
    init() {}

    /// - Returns: the line that `byte` ends, unless it is empty.
    @inlinable
    mutating func push(_ byte: UInt8) -> String? {
        switch (self.held, byte) {
        case (_, 0x0A...0x0D): return self.end(without: 0)
        case (1, 0x85) where self.line.last == 0xC2: return self.end(without: 1)
        case (2, 0xA8...0xA9): return self.end(without: 2)
        case (1, 0x80) where self.line.last == 0xE2: self.held = 2
        case (_, 0xC2), (_, 0xE2): self.held = 1
        default: self.held = 0
        }
        self.line.append(byte)
        return nil
    }

    /// The line that the end ends, unless it is empty.
    @inlinable
    mutating func finish() -> String? { self.end(without: 0) }

    @inlinable
    mutating func end(without count: Int) -> String? {
        self.held = 0
        self.line.removeLast(count)
        guard !self.line.isEmpty else { return nil }
        defer { self.line.removeAll(keepingCapacity: true) }
        return String(decoding: self.line, as: UTF8.self)
    }
}
