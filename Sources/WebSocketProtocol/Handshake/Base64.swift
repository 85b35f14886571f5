import ByteKernels

/// Base64 with padding, for the keys of the opening handshake (RFC 4648 §4).
package enum Base64 {
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        self.append(bytes.span.bytes, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    package static func append(_ bytes: RawSpan, to text: inout [UInt8]) {
        for start in stride(from: 0, to: bytes.byteCount, by: 3) {
            let present = min(bytes.byteCount - start, 3)
            var bits: UInt32 = 0
            for offset in 0..<3 { bits = bits << 8 | (offset < present ? UInt32(bytes[byte: start + offset]) : 0) }
            for position in 0..<4 {
                let value = UInt8(bits >> UInt32(18 - 6 * position) & 0x3F)
                text.append(position <= present ? self.digit(value) : UInt8(ascii: "="))
            }
        }
    }

    /// - Parameter value: 0 to 63.
    private static func digit(_ value: UInt8) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") &+ value
        case 26..<52: UInt8(ascii: "a") &+ value &- 26
        case 52..<62: UInt8(ascii: "0") &+ value &- 52
        case 62: UInt8(ascii: "+")
        default: UInt8(ascii: "/")
        }
    }

    /// - Returns: the number of encoded bytes; `nil` if `text` is not Base64 with complete padding.
    package static func decodedByteCount(_ text: String) -> Int? {
        let bytes = text.utf8.span
        guard bytes.count % 4 == 0 else { return nil }
        var end = bytes.count
        while end > max(0, bytes.count - 2), bytes[end - 1] == UInt8(ascii: "=") { end -= 1 }
        for offset in 0..<end where !self.isDigit(bytes[offset]) { return nil }
        return bytes.count / 4 * 3 - (bytes.count - end)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
            true
        default: false
        }
    }
}
