/// Reads fields of a message in turn; a field that is not all there is `nil`.
struct ByteCursor {
    private let bytes: [UInt8]
    private var position: Int
    private let end: Int

    /// `range` must lie within `bytes`.
    init(_ bytes: [UInt8], _ range: Range<Int>) {
        self.bytes = bytes
        self.position = range.lowerBound
        self.end = min(range.upperBound, bytes.count)
    }

    var isAtEnd: Bool { self.position == self.end }

    mutating func readUInt8() -> Int? {
        guard let range = self.take(1) else { return nil }
        return Int(self.bytes[range.lowerBound])
    }

    mutating func readUInt16() -> Int? {
        guard let range = self.take(2) else { return nil }
        return Int(self.bytes[range.lowerBound]) << 8 | Int(self.bytes[range.lowerBound + 1])
    }

    /// The next `count` bytes as a message of their own.
    mutating func read(_ count: Int) -> ByteCursor? {
        guard let range = self.take(count) else { return nil }
        return ByteCursor(self.bytes, range)
    }

    /// What is left.
    var rest: ArraySlice<UInt8> { self.bytes[self.position..<self.end] }

    private mutating func take(_ count: Int) -> Range<Int>? {
        guard count >= 0, count <= self.end - self.position else { return nil }
        defer { self.position += count }
        return self.position..<self.position + count
    }
}
