/// Reads base64 with its padding (RFC 4648 §4), for short texts in configurations.
enum SixtyFour {
    /// - Returns: `nil` for a length that is no multiple of 4, for invalid characters, and for unused bits that are
    ///   set.
    static func bytes(_ text: Substring) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count.isMultiple(of: 4) else { return nil }
        let padding = characters.reversed().prefix { $0 == UInt8(ascii: "=") }.count
        guard padding <= 2 else { return nil }
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for character in characters.dropLast(padding) {
            guard let value = Self.value(of: character) else { return nil }
            bits = (bits << 6 | UInt32(value)) & 0xFFFF
            count += 6
            guard count >= 8 else { continue }
            count -= 8
            bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        }
        guard bits & (1 << UInt32(count) - 1) == 0 else { return nil }
        return bytes
    }

    private static func value(of character: UInt8) -> UInt8? {
        switch character {
        case 0x41...0x5A: character - 0x41
        case 0x61...0x7A: character - 0x61 + 26
        case 0x30...0x39: character - 0x30 + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}

package enum Hexadecimal {
    /// The value of a hexadecimal digit in either case.
    package static func digit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}

extension Hexadecimal {
    /// - Returns: `nil` unless `text` is pairs of digits.
    static func bytes(_ text: String) -> [UInt8]? {
        var rest = Array(text.utf8)[...]
        guard rest.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        while let high = rest.popFirst(), let low = rest.popFirst() {
            guard let high = Self.digit(high), let low = Self.digit(low) else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}
