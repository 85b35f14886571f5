import ByteKernels

/// Base64 with the standard alphabet (RFC 4648 §4).
package enum Base64 {
    static let padding = UInt8(ascii: "=")

    package static func encoded(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        bytes.withRawSpan { self.append($0, to: &text) }
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends the encoded bytes with padding.
    package static func append(_ bytes: RawSpan, to text: inout [UInt8]) {
        for start in stride(from: 0, to: bytes.byteCount, by: 3) {
            let present = min(bytes.byteCount - start, 3)
            var bits: UInt32 = 0
            for offset in 0..<3 { bits = bits << 8 | (offset < present ? UInt32(bytes[byte: start + offset]) : 0) }
            for position in 0..<4 {
                let value = UInt8(bits >> UInt32(18 - 6 * position) & 0x3F)
                text.append(position <= present ? self.character(value) : self.padding)
            }
        }
    }

    /// Decodes strictly: complete padding, no other characters, no bits beyond the last byte (§3.5).
    /// - Returns: `nil` for any other text.
    package static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        var decoder = Base64Decoder()
        var bytes: [UInt8] = []
        let isValid = Array(text).withRawSpan { decoder.decode($0, into: &bytes) }
        guard isValid, decoder.finish() else { return nil }
        return bytes
    }

    /// Decodes base64url without padding (RFC 4648 §5), strictly: no other characters, no bits beyond the last byte. So
    /// every byte string has one text only.
    /// - Returns: `nil` for any other text.
    package static func decodedURLSafe(_ text: some Collection<UInt8>) -> [UInt8]? {
        var standard = [UInt8]()
        standard.reserveCapacity(text.count + 3)
        for character in text {
            switch character {
            case UInt8(ascii: "-"): standard.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): standard.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), self.padding: return nil
            default: standard.append(character)
            }
        }
        while standard.count % 4 != 0 { standard.append(self.padding) }
        return self.decoded(standard)
    }

    /// Decodes as browsers do for `data:` URLs: blanks and line ends are ignored, padding may be missing as a whole.
    /// - Returns: `nil` for invalid Base64.
    package static func decodedForgivingly(_ text: [UInt8]) -> [UInt8]? {
        var characters = text.filter { !$0.isBlank && $0 != 0x0A && $0 != 0x0C && $0 != 0x0D }
        if characters.count % 4 == 0 {
            if characters.last == self.padding { characters.removeLast() }
            if characters.last == self.padding { characters.removeLast() }
        }
        guard characters.count % 4 != 1 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(characters.count / 4 * 3 + 2)
        var bits: UInt32 = 0
        var count = 0
        for character in characters {
            guard let value = self.value(of: character) else { return nil }
            bits = bits << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }

    /// - Returns: the number of encoded bytes; `nil` if `text` is not Base64 with complete padding.
    package static func decodedByteCount(_ text: String) -> Int? {
        let bytes = text.utf8.span
        guard bytes.count % 4 == 0 else { return nil }
        var end = bytes.count
        while end > max(0, bytes.count - 2), bytes[end - 1] == self.padding { end -= 1 }
        for offset in 0..<end where self.value(of: bytes[offset]) == nil { return nil }
        return bytes.count / 4 * 3 - (bytes.count - end)
    }

    /// - Parameter value: 0 to 63.
    private static func character(_ value: UInt8) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") &+ value
        case 26..<52: UInt8(ascii: "a") &+ value &- 26
        case 52..<62: UInt8(ascii: "0") &+ value &- 52
        case 62: UInt8(ascii: "+")
        default: UInt8(ascii: "/")
        }
    }

    /// The six bits of `character`; `nil` if it is none of the alphabet.
    fileprivate static func value(of character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}

/// Decodes one base64 text (RFC 4648 §4) that arrives in pieces. Strict: no line breaks, padding required, no bits
/// beyond the last byte (§3.5).
package struct Base64Decoder: Hashable, Sendable {
    /// Bits of the current group of four characters.
    private var bits: UInt32 = 0
    /// Characters of the current group seen, padding included: 0 to 3.
    private var count = 0
    private var padding = 0
    /// A padded group ends the text.
    private var ended = false

    package init() {}

    /// Appends the decoded bytes.
    /// - Returns: whether every character is valid.
    package mutating func decode(_ text: RawSpan, into output: inout [UInt8]) -> Bool {
        for offset in 0..<text.byteCount {
            guard !self.ended, self.take(text[byte: offset]) else { return false }
            guard self.count == 4 else { continue }
            guard self.finishGroup(into: &output) else { return false }
        }
        return true
    }

    /// The text is over; ready for the next one.
    /// - Returns: whether it ended with a whole group.
    package mutating func finish() -> Bool {
        defer { self = Base64Decoder() }
        return self.count == 0
    }

    private mutating func take(_ character: UInt8) -> Bool {
        if character == Base64.padding {
            guard self.count >= 2 else { return false }
            self.padding += 1
            self.bits <<= 6
        } else {
            guard self.padding == 0, let bits = Base64.value(of: character) else { return false }
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
