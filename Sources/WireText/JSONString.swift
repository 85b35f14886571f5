/// The escape of one UTF-16 code unit in a JSON string, byte by byte: `\n`, `\"` or `\u001b` (RFC 8259 §7).
package struct JSONEscape: Sequence, IteratorProtocol, Sendable {
    /// The bytes that follow, the first one lowest. None is zero.
    @usableFromInline var rest: UInt64

    package init(_ unit: UInt16) {
        switch unit {
        case 0x22, 0x5C: self.rest = 0x5C | UInt64(unit) << 8
        case 0x0A: self.rest = Self.short("n")
        case 0x0D: self.rest = Self.short("r")
        case 0x09: self.rest = Self.short("t")
        default:
            self.rest = Self.short("u")
            for index in 0..<4 {
                let digit = UInt8(unit >> (12 - 4 * index) & 0xF)
                let letter = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                self.rest |= UInt64(letter) << (16 + 8 * index)
            }
        }
    }

    private static func short(_ letter: Unicode.Scalar) -> UInt64 { 0x5C | UInt64(letter.value) << 8 }

    @inlinable
    package mutating func next() -> UInt8? {
        guard self.rest != 0 else { return nil }
        defer { self.rest >>= 8 }
        return UInt8(truncatingIfNeeded: self.rest)
    }
}

extension [UInt8] {
    /// Appends a JSON string, with what RFC 8259 §7 requires escaped, and U+2028 and U+2029 as they are.
    package mutating func append(jsonString text: String) {
        self.append(UInt8(ascii: "\""))
        for byte in text.utf8 { self.append(jsonEscaped: byte) }
        self.append(UInt8(ascii: "\""))
    }

    /// Appends bytes of valid UTF-8 as a JSON string.
    package mutating func append(jsonString text: some Sequence<UInt8>) {
        self.append(UInt8(ascii: "\""))
        for byte in text { self.append(jsonEscaped: byte) }
        self.append(UInt8(ascii: "\""))
    }

    private mutating func append(jsonEscaped byte: UInt8) {
        switch byte {
        case 0..<0x20, UInt8(ascii: "\""), UInt8(ascii: "\\"):
            for part in JSONEscape(UInt16(byte)) { self.append(part) }
        default: self.append(byte)
        }
    }
}
