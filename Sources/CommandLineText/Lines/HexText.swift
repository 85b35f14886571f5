/// Bytes as hexadecimal digits.
package enum HexText {
    /// Pairs of digits in either case; spaces and colons may stand between the pairs.
    /// - Returns: `nil` for anything else.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for byte in text.utf8 {
            if byte == UInt8(ascii: " ") || byte == UInt8(ascii: ":") {
                guard high == nil else { return nil }
                continue
            }
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else { return nil }
            if let first = high {
                bytes.append(first << 4 | UInt8(digit))
                high = nil
            } else {
                high = UInt8(digit)
            }
        }
        return high == nil ? bytes : nil
    }

    /// Pairs of digits with spaces between them.
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { byte in
            let digits = String(byte, radix: 16)
            return digits.utf8.count == 1 ? "0" + digits : digits
        }.joined(separator: " ")
    }
}
