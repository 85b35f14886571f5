/// Comparisons of protocol words, which are ASCII and know no case.
enum ASCIIText {
    /// - Parameter small: in small letters.
    static func equal(_ text: String, small: String) -> Bool {
        self.equal(text.utf8, small: small.utf8)
    }

    static func equal(_ text: Substring, small: String) -> Bool {
        self.equal(text.utf8, small: small.utf8)
    }

    private static func equal(_ text: some Collection<UInt8>, small: String.UTF8View) -> Bool {
        guard text.count == small.count else { return false }
        return zip(text, small).allSatisfy { Self.lowered($0) == $1 }
    }

    static func lowered(_ byte: UInt8) -> UInt8 {
        (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
    }

    /// The members of a list separated by commas, without blanks around them and without empty ones (RFC 9110 §5.6.1).
    static func members(of list: String) -> [Substring] {
        list.split(separator: ",").compactMap { part in
            let start = part.drop { $0 == " " || $0 == "\t" }
            guard let last = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return nil }
            return start[...last]
        }
    }

    /// The value of digits alone; `nil` for anything else or one that does not fit.
    static func number(_ text: String) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(text)
    }

    /// A character of a token (RFC 9110 §5.6.2).
    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E...0x60, 0x7C, 0x7E: true
        default: false
        }
    }
}
