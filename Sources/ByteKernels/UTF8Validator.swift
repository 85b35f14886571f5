/// Incremental UTF-8 validator for chunks split anywhere, which locates the first invalid byte.
///
/// Fails at the earliest possible byte: `E0 80`, `ED A0` and `F4 90` at their second byte, `C0`, `C1` and `F5`…`FF` at
/// their first. The state has three bytes.
///
/// - Source: RFC 3629 §4 (grammar), RFC 6455 §8.1 (invalid text fails the connection).
package struct UTF8Validator: Equatable, Sendable {
    /// Continuation bytes that the current character still needs, 0 to 3.
    private var missing: UInt8 = 0
    /// Allowed range of the next continuation byte; narrower than `80`…`BF` only after `E0`, `ED`, `F0` and `F4`.
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    package init() {}

    /// Whether the text does not end inside a character.
    package var isComplete: Bool { self.missing == 0 }

    /// Starts a new text. Required before further use after `validate(_:)` found an error.
    package mutating func reset() {
        self = UTF8Validator()
    }

    /// Validates the next chunk of the text.
    ///
    /// - Returns: the offset of the first invalid byte in `bytes`, if any. Check `isComplete` at the end of the text.
    package mutating func validate(_ bytes: RawSpan) -> Int? {
        unsafe bytes.withUnsafeBytes { unsafe self.validate($0) }
    }

    private mutating func validate(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard let start = bytes.baseAddress else { return nil }
        let count = bytes.count
        var offset = 0
        while self.missing > 0, offset < count {
            guard unsafe self.accept(start.load(fromByteOffset: offset, as: UInt8.self)) else { return offset }
            offset &+= 1
        }
        offset = unsafe Self.skipWholeCharacters(start, from: offset, count: count)
        while offset < count {
            guard unsafe self.accept(start.load(fromByteOffset: offset, as: UInt8.self)) else { return offset }
            offset &+= 1
        }
        return nil
    }

    /// Validates a single byte: for the rest of the fast path and for locating an invalid byte.
    private mutating func accept(_ byte: UInt8) -> Bool {
        if self.missing > 0 {
            guard byte >= self.lowest, byte <= self.highest else { return false }
            self.expect(self.missing &- 1)
            return true
        }
        switch byte {
        case 0x00...0x7F: break
        case 0xC2...0xDF: self.expect(1)
        case 0xE0: self.expect(2, from: 0xA0)  // below: overlong
        case 0xED: self.expect(2, to: 0x9F)  // above: surrogates
        case 0xE1...0xEF: self.expect(2)
        case 0xF0: self.expect(3, from: 0x90)  // below: overlong
        case 0xF1...0xF3: self.expect(3)
        case 0xF4: self.expect(3, to: 0x8F)  // above: beyond U+10FFFF
        default: return false
        }
        return true
    }

    private mutating func expect(_ missing: UInt8, from lowest: UInt8 = 0x80, to highest: UInt8 = 0xBF) {
        self.missing = missing
        self.lowest = lowest
        self.highest = highest
    }

    /// Skips complete valid characters: ASCII 128 bytes at a time, others one by one.
    ///
    /// - Returns: the offset of the start of a character, with the end or an error within the next few bytes.
    private static func skipWholeCharacters(_ start: UnsafeRawPointer, from first: Int, count: Int) -> Int {
        var offset = first
        while true {
            offset = unsafe Self.skipASCII(start, from: offset, count: count)
            let beyondASCII = offset
            while offset &+ 4 <= count {
                let word = unsafe UInt32(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
                let length = Self.characterLength(word)
                guard length > 0 else { break }
                offset &+= length
            }
            guard offset > beyondASCII else { return offset }
        }
    }

    /// - Returns: the offset of the first non-ASCII byte, or of one of the last seven bytes.
    @inline(__always)
    private static func skipASCII(_ start: UnsafeRawPointer, from first: Int, count: Int) -> Int {
        let highBits: UInt64 = 0x8080_8080_8080_8080
        var offset = first
        while offset &+ 128 <= count {
            let all = unsafe Self.union(start, at: offset) | Self.union(start, at: offset &+ 64)
            let halves = all.lowHalf | all.highHalf
            guard (halves.x | halves.y) & highBits == 0 else { break }
            offset &+= 128
        }
        while offset &+ 8 <= count {
            let word = unsafe UInt64(littleEndian: start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            guard word & highBits == 0 else {
                return offset &+ (word & highBits).trailingZeroBitCount &>> 3
            }
            offset &+= 8
        }
        return offset
    }

    /// The bitwise OR of the two halves of the 64 bytes at `offset`.
    @inline(__always)
    private static func union(_ start: UnsafeRawPointer, at offset: Int) -> SIMD4<UInt64> {
        unsafe start.loadUnaligned(fromByteOffset: offset, as: SIMD4<UInt64>.self)
            | start.loadUnaligned(fromByteOffset: offset &+ 32, as: SIMD4<UInt64>.self)
    }

    /// - Parameter word: four bytes of text in little-endian order.
    /// - Returns: the length of the valid character of two to four bytes at its start; 0 for ASCII and invalid bytes.
    @inline(__always)
    private static func characterLength(_ word: UInt32) -> Int {
        if word & 0x00C0_C0F0 == 0x0080_80E0 {
            let scalar = (word & 0x0F) &<< 12 | (word &>> 2) & 0x0FC0 | (word &>> 16) & 0x3F
            return scalar >= 0x800 && scalar & 0xF800 != 0xD800 ? 3 : 0
        }
        if word & 0x0000_C0E0 == 0x0000_80C0 {
            return word & 0x1E != 0 ? 2 : 0  // `C0` and `C1` would be overlong
        }
        if word & 0xC0C0_C0F8 == 0x8080_80F0 {
            let upper = (word & 0x07) &<< 6 | (word &>> 8) & 0x3F  // the scalar without its lowest twelve bits
            return upper >= 0x10 && upper <= 0x10F ? 4 : 0
        }
        return 0
    }
}

extension [UInt8] {
    /// Whether all bytes together are a valid text in UTF-8.
    package var isValidUTF8: Bool {
        var validator = UTF8Validator()
        return self.withRawSpan { validator.validate($0) } == nil && validator.isComplete
    }
}
