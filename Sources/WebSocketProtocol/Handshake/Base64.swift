/// Base64 with padding, for the keys of the opening handshake (RFC 4648 §4).
package enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The text that stands for `bytes`.
    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let present = min(bytes.count - start, 3)
            var bits: UInt32 = 0
            for offset in 0..<3 { bits = bits << 8 | (offset < present ? UInt32(bytes[start + offset]) : 0) }
            for position in 0..<4 {
                let index = Int(bits >> UInt32(18 - 6 * position) & 0x3F)
                text.append(position <= present ? self.alphabet[index] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// - Returns: how many bytes `text` stands for; `nil` when it is not Base64 with all its padding.
    package static func decodedCount(_ text: String) -> Int? {
        let padding = text.utf8.suffix(3).count { $0 == UInt8(ascii: "=") }
        guard text.utf8.count % 4 == 0, padding <= 2 else { return nil }
        guard text.utf8.dropLast(padding).allSatisfy(self.isDigit) else { return nil }
        return text.utf8.count / 4 * 3 - padding
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
