import ByteKernels

/// Base64 as in RFC 4648 §4: the standard alphabet, padded.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    static let padding = UInt8(ascii: "=")

    /// The base64 text of the bytes in `range`.
    static func encoded(_ bytes: RawSpan, _ range: Range<Int>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((range.count + 2) / 3 * 4)
        for start in stride(from: range.lowerBound, to: range.upperBound, by: 3) {
            let count = min(3, range.upperBound - start)
            var bits: UInt32 = 0
            for index in 0..<3 {
                bits = bits << 8 | (index < count ? UInt32(bytes[byte: start + index]) : 0)
            }
            for index in 0..<4 {
                text.append(index <= count ? Self.alphabet[Int(bits >> UInt32(18 - 6 * index)) & 63] : Self.padding)
            }
        }
        return text
    }

    /// The six bits of `character`; `nil` if it is none of the alphabet.
    static func bits(of character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character) - 65
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character) - 97 + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character) - 48 + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}

/// Decodes one base64 text (RFC 4648 §4) that arrives in pieces. Strict: no line breaks, padding required, no bits
/// beyond the last byte (§3.5).
struct Base64Decoder: Hashable, Sendable {
    /// Bits of the current group of four characters.
    private var bits: UInt32 = 0
    /// Characters of the current group seen, padding included: 0 to 3.
    private var count = 0
    private var padding = 0
    /// A padded group ends the text.
    private var ended = false

    /// Appends the decoded bytes.
    /// - Returns: whether every character is valid.
    mutating func decode(_ text: RawSpan, into output: inout [UInt8]) -> Bool {
        for offset in 0..<text.byteCount {
            guard !self.ended, self.take(text[byte: offset]) else { return false }
            guard self.count == 4 else { continue }
            guard self.finishGroup(into: &output) else { return false }
        }
        return true
    }

    /// The text is over; ready for the next one.
    /// - Returns: whether it ended with a whole group.
    mutating func finish() -> Bool {
        defer { self = Base64Decoder() }
        return self.count == 0
    }

    private mutating func take(_ character: UInt8) -> Bool {
        if character == Base64.padding {
            guard self.count >= 2 else { return false }
            self.padding += 1
            self.bits <<= 6
        } else {
            guard self.padding == 0, let bits = Base64.bits(of: character) else { return false }
            self.bits = self.bits << 6 | bits
        }
        self.count += 1
        return true
    }

    private mutating func finishGroup(into output: inout [UInt8]) -> Bool {
        let bytes = 3 - self.padding
        let spare = self.bits & (1 << UInt32(8 * self.padding) - 1)
        guard spare == 0 else { return false }
        for index in 0..<bytes {
            output.append(UInt8(truncatingIfNeeded: self.bits >> UInt32(16 - 8 * index)))
        }
        self.ended = self.padding > 0
        self.bits = 0
        self.count = 0
        self.padding = 0
        return true
    }
}
