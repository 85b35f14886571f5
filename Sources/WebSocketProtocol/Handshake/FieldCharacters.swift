extension UInt8 {
    /// tchar of RFC 9110 §5.6.2.
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#")...UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "^")...UInt8(ascii: "`"), UInt8(ascii: "|"),
            UInt8(ascii: "~"):
            true
        default: false
        }
    }

    /// Optional whitespace of RFC 9110 §5.6.3.
    var isFieldWhitespace: Bool { self == 0x20 || self == 0x09 }

    /// What neither a start line nor a field may hold: all control characters but the tab (RFC 9110 §5.5).
    var isForbiddenInHead: Bool { (self < 0x20 && self != 0x09) || self == 0x7F }

    /// What a target is made of: everything from `!` to `~`.
    var isVisibleASCII: Bool { self > 0x20 && self < 0x7F }

    /// ASCII letters as lower case, everything else as it is.
    var lowercasedASCII: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}

extension StringProtocol {
    /// Whether this is a token of RFC 9110 §5.6.2: one allowed character or more.
    var isToken: Bool { !self.isEmpty && self.utf8.allSatisfy(\.isTokenCharacter) }
}

extension String {
    /// Equal but for the case of ASCII letters, as names in HTTP are.
    func matchesIgnoringCase(_ other: String) -> Bool {
        let count = self.utf8.count
        guard count == other.utf8.count else { return false }
        let left = self.utf8.span
        let right = other.utf8.span
        for index in 0..<count where left[index] != right[index] {
            guard left[index].lowercasedASCII == right[index].lowercasedASCII else { return false }
        }
        return true
    }
}
