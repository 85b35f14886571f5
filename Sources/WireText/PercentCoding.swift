/// Percent-encoding (RFC 3986 §2.1).
package enum PercentCoding {
    /// Decodes leniently: a percent sign without two hexadecimal digits is kept.
    package static func decoded(_ text: some Collection<UInt8>) -> [UInt8] {
        self.decode(text, plusIsSpace: false, isStrict: false) ?? []
    }

    /// - Returns: `nil` for a percent sign without two hexadecimal digits.
    package static func strictlyDecoded(_ text: some Collection<UInt8>) -> [UInt8]? {
        self.decode(text, plusIsSpace: false, isStrict: true)
    }

    /// Decodes strictly.
    /// - Parameter plusIsSpace: as in `application/x-www-form-urlencoded`.
    /// - Returns: `nil` for a percent sign without two hexadecimal digits, and for bytes that are not UTF-8.
    package static func decodedText(_ text: some StringProtocol, plusIsSpace: Bool = false) -> String? {
        self.decode(text.utf8, plusIsSpace: plusIsSpace, isStrict: true)
            .flatMap { String(validating: $0, as: UTF8.self) }
    }

    private static func decode(_ text: some Collection<UInt8>, plusIsSpace: Bool, isStrict: Bool) -> [UInt8]? {
        let text = Array(text)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            if text[index] != UInt8(ascii: "%") {
                bytes.append(plusIsSpace && text[index] == UInt8(ascii: "+") ? 0x20 : text[index])
            } else if index + 2 < text.count, let high = text[index + 1].hexadecimalValue,
                let low = text[index + 2].hexadecimalValue
            {
                bytes.append(high << 4 | low)
                index += 2
            } else if isStrict {
                return nil
            } else {
                bytes.append(text[index])
            }
            index += 1
        }
        return bytes
    }

    /// Encodes every byte of `text` for which `isAllowed` is false; by default all but the unreserved characters.
    package static func encoded(
        _ text: some StringProtocol, allowing isAllowed: (UInt8) -> Bool = { $0.isUnreserved }
    ) -> String {
        if text.utf8.allSatisfy(isAllowed) { return String(text) }
        let digits = Array("0123456789ABCDEF".utf8)
        let bytes = text.utf8.flatMap { byte -> [UInt8] in
            isAllowed(byte) ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 0xF)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// Bytes as pairs of hexadecimal digits.
package enum Hexadecimal {
    /// - Returns: `nil` unless `text` is pairs of digits.
    package static func bytes(_ text: String) -> [UInt8]? {
        var rest = Array(text.utf8)[...]
        guard rest.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        while let high = rest.popFirst(), let low = rest.popFirst() {
            guard let high = high.hexadecimalValue, let low = low.hexadecimalValue else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    /// In lower case.
    package static func text(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
    }
}
