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
        let same = text.withContiguousStorageIfAvailable { text in
            small.withContiguousStorageIfAvailable { small in
                text.indices.allSatisfy { Self.lowered(text[$0]) == small[$0] }
            }
        }
        return (same ?? nil) ?? zip(text, small).allSatisfy { Self.lowered($0) == $1 }
    }

    /// Whether a list has this member, given in small letters.
    static func list(_ list: String, has small: String) -> Bool {
        if self.equal(list, small: small) { return true }
        // Most lists are of one; a blank beside it is rare.
        guard list.utf8.contains(where: { $0 == 0x2C || $0 == 0x20 || $0 == 0x09 }) else { return false }
        return self.members(of: list).contains { self.equal($0, small: small) }
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
        // A bit for each character below 0x40, and for each from there on.
        let half: UInt64 = byte < 0x40 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 0x80 && half >> UInt64(byte & 0x3F) & 1 == 1
    }
}
