extension UInt8 {
    /// `tchar` of RFC 9110 §5.6.2.
    var isTokenCharacter: Bool {
        switch self {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "!"), UInt8(ascii: "#")...UInt8(ascii: "'"),
            UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^")...UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    var isDigit: Bool { UInt8(ascii: "0") <= self && self <= UInt8(ascii: "9") }

    var isLetter: Bool {
        let lowered = self | 0x20
        return UInt8(ascii: "a") <= lowered && lowered <= UInt8(ascii: "z")
    }

    /// A space or a horizontal tab (OWS of RFC 9110 §5.6.3).
    var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    /// A character that is not allowed in field values: controls except the tab.
    var isControl: Bool { self < 0x20 && self != UInt8(ascii: "\t") || self == 0x7F }

    var loweredASCII: UInt8 {
        UInt8(ascii: "A") <= self && self <= UInt8(ascii: "Z") ? self | 0x20 : self
    }

    var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension StringProtocol {
    /// ASCII case-insensitive comparison.
    func matchesIgnoringCase(_ other: some StringProtocol) -> Bool {
        self.utf8.count == other.utf8.count
            && self.utf8.elementsEqual(other.utf8) { $0.loweredASCII == $1.loweredASCII }
    }

    func beginsIgnoringCase(_ start: String) -> Bool {
        self.utf8.prefix(start.utf8.count).elementsEqual(start.utf8) { $0.loweredASCII == $1.loweredASCII }
    }

    /// With ASCII letters in lower case.
    var loweredASCII: String {
        String(decoding: self.utf8.map(\.loweredASCII), as: UTF8.self)
    }

    /// Without spaces and tabs at both ends.
    var trimmingBlanks: String {
        let bytes = Substring(self).utf8
        guard let start = bytes.firstIndex(where: { !$0.isBlank }), let last = bytes.lastIndex(where: { !$0.isBlank })
        else { return "" }
        return String(Substring(bytes[start...last]))
    }

    /// Whether this is a `token` of RFC 9110 §5.6.2.
    var isToken: Bool { !self.isEmpty && self.utf8.allSatisfy(\.isTokenCharacter) }

    /// The value of a string of decimal digits, clamped to `limit`; `nil` for anything else.
    func clampedDecimal(limit: Int64) -> Int64? {
        guard !self.isEmpty, self.utf8.allSatisfy(\.isDigit) else { return nil }
        var value: Int64 = 0
        for digit in self.utf8 {
            let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carried) = scaled.addingReportingOverflow(Int64(digit - UInt8(ascii: "0")))
            if overflow || carried || sum > limit { return limit }
            value = sum
        }
        return value
    }
}
