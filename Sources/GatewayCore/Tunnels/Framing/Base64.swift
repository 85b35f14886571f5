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

    /// The six bits that `character` stands for, or `nil`.
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
