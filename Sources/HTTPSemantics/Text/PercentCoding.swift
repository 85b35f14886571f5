/// Percent-encoding (RFC 3986 §2.1).
enum PercentCoding {
    private static let digits = Array("0123456789ABCDEF".utf8)

    /// Decodes `text`. A percent sign without two hexadecimal digits is kept.
    static func decoded(_ text: some Collection<UInt8>) -> [UInt8] {
        let text = Array(text)
        guard text.contains(UInt8(ascii: "%")) else { return text }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "%"), index + 2 < text.count, let high = text[index + 1].hexadecimalValue,
                let low = text[index + 2].hexadecimalValue
            {
                bytes.append(high << 4 | low)
                index += 3
            } else {
                bytes.append(text[index])
                index += 1
            }
        }
        return bytes
    }

    /// Encodes every byte of `text` for which `isAllowed` is false.
    static func encoded(_ text: some StringProtocol, allowing isAllowed: (UInt8) -> Bool) -> String {
        if text.utf8.allSatisfy(isAllowed) { return String(text) }
        let bytes = text.utf8.flatMap { byte -> [UInt8] in
            isAllowed(byte)
                ? [byte] : [UInt8(ascii: "%"), self.digits[Int(byte >> 4)], self.digits[Int(byte & 0xF)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
