extension StringProtocol {
    /// Compares as names of fields compare: letters of ASCII in either case are the same, nothing else is.
    func isSameFieldName(as other: some StringProtocol) -> Bool {
        self.utf8.count == other.utf8.count
            && self.utf8.elementsEqual(other.utf8) { $0.loweredLetter == $1.loweredLetter }
    }

    var withLoweredLetters: String {
        guard self.utf8.contains(where: { $0 != $0.loweredLetter }) else { return String(self) }
        return String(decoding: self.utf8.map(\.loweredLetter), as: UTF8.self)
    }

    /// Whether this is a token, which is what names of fields are (RFC 9110 §5.1).
    var isFieldName: Bool {
        let marks = "!#$%&'*+-.^_`|~".utf8
        return !self.isEmpty
            && self.utf8.allSatisfy { byte in
                switch byte | 0x20 {
                case UInt8(ascii: "a")...UInt8(ascii: "z") where byte >= 0x40: true
                default: (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || marks.contains(byte)
                }
            }
    }

    /// Whether this can be sent as a value without beginning another line: no NUL, and line ends only where the next
    /// line goes on with a blank, as RFC 9112 §5.2 describes the old folding.
    var isFieldValue: Bool {
        let bytes = Array(self.utf8)
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case 0x00, 0x0A: return false
            case 0x0D:
                guard index + 2 < bytes.count, bytes[index + 1] == 0x0A,
                    bytes[index + 2] == 0x20 || bytes[index + 2] == 0x09
                else { return false }
                index += 3
            default: index += 1
            }
        }
        return true
    }
}

extension UInt8 {
    fileprivate var loweredLetter: UInt8 {
        UInt8(ascii: "A") <= self && self <= UInt8(ascii: "Z") ? self | 0x20 : self
    }
}
