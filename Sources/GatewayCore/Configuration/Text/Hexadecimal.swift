enum Hexadecimal {
    /// The value of a hexadecimal digit in either case.
    static func digit(_ byte: UInt8) -> UInt8? {
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
