import ByteKernels

/// The frame that nearly every message is: the first and the last of its message, no reserved bit set, with at most
/// 65535 bytes of payload that are all there. It breaks no rule that can be told without looking at the payload.
struct PlainFrame {
    let isText: Bool
    /// Where the payload stands; the masking key, if there is one, in the four bytes before.
    let payload: Range<Int>

    /// - Parameter limit: longest payload accepted, in bytes.
    /// - Returns: `nil` where anything else stands at `position`.
    @inline(__always)
    init?(_ bytes: RawSpan, at position: Int, from sender: Role, limit: Int) {
        let isMasked = sender == .client
        var start = position + (isMasked ? 6 : 2)
        guard start <= bytes.byteCount else { return nil }
        let head = UInt16(littleEndian: bytes.unaligned(position, as: UInt16.self))
        let first = UInt8(truncatingIfNeeded: head)
        let second = UInt8(truncatingIfNeeded: head >> 8)
        guard first == 0x81 || first == 0x82, (second & 0x80 != 0) == isMasked else { return nil }
        var length = Int(second & 0x7F)
        if length >= 126 {
            guard length == 126, start + 2 <= bytes.byteCount else { return nil }
            length = Int(UInt16(bigEndian: bytes.unaligned(position + 2, as: UInt16.self)))
            // Not written in the fewest bytes.
            guard length >= 126 else { return nil }
            start += 2
        }
        guard length <= bytes.byteCount - start, length <= limit else { return nil }
        self.isText = first == 0x81
        self.payload = start..<(start + length)
    }

    /// Of a client's frame.
    func maskingKey(in bytes: RawSpan) -> UInt32 {
        UInt32(littleEndian: bytes.unaligned(self.payload.lowerBound - 4, as: UInt32.self))
    }

    func mask(_ buffer: inout MutableRawSpan, _ key: UInt32) {
        var payload = buffer._mutatingExtracting(self.payload)
        _ = applyMask(&payload, key: key, phase: 0)
    }

    /// Whether the payload, unmasked, is UTF-8 as a whole.
    func isValidText(in bytes: RawSpan) -> Bool {
        var validator = UTF8Validator()
        return validator.validate(bytes.extracting(self.payload)) == nil && validator.isComplete
    }
}
