/// Unicode scalars out of the single bytes of UTF-8. A sequence that breaks off becomes one U+FFFD, and so does each
/// byte that can begin none (Unicode 3.9, "maximal subparts").
@usableFromInline
struct ScalarDecoder {
    @usableFromInline var value: UInt32 = 0
    /// Bytes that are still to come.
    @usableFromInline var missing = 0
    /// What the next of them may be.
    @usableFromInline var lowest: UInt8 = 0x80
    @usableFromInline var highest: UInt8 = 0xBF

    @inlinable
    init() {}

    @usableFromInline static var replacement: Unicode.Scalar { "\u{FFFD}" }

    /// - Parameter isTaken: `false` where `byte` begins something new, and is to come again.
    /// - Returns: a scalar that is complete.
    @inlinable
    mutating func push(_ byte: UInt8, isTaken: inout Bool) -> Unicode.Scalar? {
        guard self.missing > 0 else { return self.begin(byte) }
        guard byte >= self.lowest, byte <= self.highest else {
            isTaken = false
            return self.finish()
        }
        self.value = self.value << 6 | UInt32(byte & 0x3F)
        self.missing -= 1
        (self.lowest, self.highest) = (0x80, 0xBF)
        return self.missing == 0 ? Unicode.Scalar(self.value) : nil
    }

    @inlinable
    mutating func begin(_ byte: UInt8) -> Unicode.Scalar? {
        switch byte {
        case 0x00...0x7F: return Unicode.Scalar(byte)
        case 0xC2...0xDF: self.expect(1, UInt32(byte & 0x1F))
        case 0xE0: self.expect(2, 0, from: 0xA0)
        case 0xED: self.expect(2, 0x0D, to: 0x9F)
        case 0xE1...0xEF: self.expect(2, UInt32(byte & 0x0F))
        case 0xF0: self.expect(3, 0, from: 0x90)
        case 0xF1...0xF3: self.expect(3, UInt32(byte & 0x07))
        case 0xF4: self.expect(3, 4, to: 0x8F)
        default: return Self.replacement
        }
        return nil
    }

    @inlinable
    mutating func expect(_ missing: Int, _ value: UInt32, from lowest: UInt8 = 0x80, to highest: UInt8 = 0xBF) {
        self.missing = missing
        self.value = value
        self.lowest = lowest
        self.highest = highest
    }

    /// What the end makes of a sequence that broke off.
    @inlinable
    mutating func finish() -> Unicode.Scalar? {
        guard self.missing > 0 else { return nil }
        self.expect(0, 0)
        return Self.replacement
    }
}
