/// The small alphabets of names.
enum NameText {
    /// Letters, digits, `-`, `_` and `.`, 1 to 64 of them, the first a letter or digit.
    static func isName(_ text: some StringProtocol) -> Bool {
        guard (1...64).contains(text.utf8.count), let first = text.utf8.first, Self.isAlphanumeric(first) else {
            return false
        }
        return text.utf8.allSatisfy { Self.isAlphanumeric($0) || $0 == 0x2D || $0 == 0x5F || $0 == 0x2E }
    }

    /// Letters, digits and `_`, 1 to 64, not beginning with a digit.
    static func isParameter(_ text: some StringProtocol) -> Bool {
        guard (1...64).contains(text.utf8.count), let first = text.utf8.first, !(0x30...0x39).contains(first) else {
            return false
        }
        return text.utf8.allSatisfy { Self.isAlphanumeric($0) || $0 == 0x5F }
    }

    /// A token of HTTP (RFC 9110 §5.6.2), 1 to 256 bytes.
    static func isToken(_ text: some StringProtocol) -> Bool {
        (1...256).contains(text.utf8.count)
            && text.utf8.allSatisfy { Self.isAlphanumeric($0) || "!#$%&'*+-.^_`|~".utf8.contains($0) }
    }

    /// What a path and query may hold (RFC 3986 §3.3, §3.4), `%` included.
    static func isResourceByte(_ byte: UInt8) -> Bool {
        Self.isAlphanumeric(byte) || "-._~!$&'()*+,;=:@/?%".utf8.contains(byte)
    }

    static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: false
        }
    }
}
