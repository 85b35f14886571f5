import ByteKernels

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

    /// Appends what `text` stands for.
    /// - Returns: whether every character fits.
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
