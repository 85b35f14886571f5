extension UInt8 {
    /// `tchar` of RFC 9110 §5.6.2.
    @inlinable package var isTokenCharacter: Bool {
        guard self < 0x80 else { return false }
        // One bit for each character: below 0x40, and from 0x40 to 0x7F.
        let half: UInt64 = self < 0x40 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return half &>> UInt64(self & 0x3F) & 1 == 1
    }

    @inlinable package var isDigit: Bool { UInt8(ascii: "0") <= self && self <= UInt8(ascii: "9") }

    @inlinable package var isLetter: Bool {
        let lowered = self | 0x20
        return UInt8(ascii: "a") <= lowered && lowered <= UInt8(ascii: "z")
    }

    /// A space or a horizontal tab (OWS of RFC 9110 §5.6.3).
    @inlinable package var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }

    /// A control character other than the tab, which neither start lines nor fields may contain (RFC 9110 §5.5).
    @inlinable package var isControl: Bool { self < 0x20 && self != UInt8(ascii: "\t") || self == 0x7F }

    /// `!` to `~`.
    @inlinable package var isVisibleASCII: Bool { self > 0x20 && self < 0x7F }

    /// A character that percent-encoding leaves unchanged (RFC 3986 §2.3).
    @inlinable package var isUnreserved: Bool {
        self.isLetter || self.isDigit || self == UInt8(ascii: "-") || self == UInt8(ascii: ".")
            || self == UInt8(ascii: "_") || self == UInt8(ascii: "~")
    }

    /// ASCII letters in lower case, other bytes unchanged.
    @inlinable package var loweredASCII: UInt8 {
        UInt8(ascii: "A") <= self && self <= UInt8(ascii: "Z") ? self | 0x20 : self
    }

    /// The value of a hexadecimal digit in either case; `nil` for other bytes.
    package var hexadecimalValue: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension StringProtocol {
    /// Whether this is a `token` of RFC 9110 §5.6.2.
    package var isToken: Bool { !self.isEmpty && self.utf8.allSatisfy(\.isTokenCharacter) }

    /// With ASCII letters in lower case.
    package var loweredASCII: String { String(self).loweredASCII }

    /// ASCII case-insensitive comparison.
    package func matchesIgnoringCase(_ other: some StringProtocol) -> Bool {
        self.utf8.count == other.utf8.count
            && self.utf8.elementsEqual(other.utf8) { $0.loweredASCII == $1.loweredASCII }
    }

    package func beginsIgnoringCase(_ start: String) -> Bool {
        self.utf8.prefix(start.utf8.count).elementsEqual(start.utf8) { $0.loweredASCII == $1.loweredASCII }
    }

    /// Without spaces and tabs at both ends.
    package var trimmingBlanks: String {
        let bytes = Substring(self).utf8
        guard let start = bytes.firstIndex(where: { !$0.isBlank }), let last = bytes.lastIndex(where: { !$0.isBlank })
        else { return "" }
        return String(Substring(bytes[start...last]))
    }

    /// The value of a string of decimal digits; `nil` for anything else, or above `Int64.max`.
    package var decimal: Int64? {
        guard !self.isEmpty else { return nil }
        var number: Int64 = 0
        for byte in self.utf8 {
            guard byte.isDigit else { return nil }
            let (product, overflows) = number.multipliedReportingOverflow(by: 10)
            let (sum, exceeds) = product.addingReportingOverflow(Int64(byte - UInt8(ascii: "0")))
            guard !overflows, !exceeds else { return nil }
            number = sum
        }
        return number
    }

    /// The value of a string of decimal digits, clamped to `limit`; `nil` for anything else.
    package func clampedDecimal(limit: Int64) -> Int64? {
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

extension String {
    /// With ASCII letters in lower case.
    package var loweredASCII: String {
        let bytes = self.utf8.span
        for index in bytes.indices where bytes[index] != bytes[index].loweredASCII {
            return String(decoding: self.utf8.map(\.loweredASCII), as: UTF8.self)
        }
        return self
    }

    /// The value of a string of decimal digits; `nil` for anything else, or above `Int64.max`.
    package var decimal: Int64? {
        let digits = self.utf8.span
        guard !digits.isEmpty else { return nil }
        var value: Int64 = 0
        for index in digits.indices {
            guard digits[index].isDigit else { return nil }
            let (scaled, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carried) = scaled.addingReportingOverflow(Int64(digits[index] - UInt8(ascii: "0")))
            if overflow || carried { return nil }
            value = sum
        }
        return value
    }

    /// ASCII case-insensitive comparison.
    package func matchesIgnoringCase(_ other: String) -> Bool {
        let left = self.utf8.span
        let right = other.utf8.span
        guard left.count == right.count else { return false }
        for index in left.indices where left[index] != right[index] {
            guard left[index].loweredASCII == right[index].loweredASCII else { return false }
        }
        return true
    }
}
