/// Values of parameters beyond ASCII, as in `filename*=UTF-8''na%C3%AFve.txt` (RFC 8187).
enum ExtendedValue {
    /// - Returns: `nil` for what is no such value, and for an encoding other than UTF-8 and ISO-8859-1.
    static func decoded(_ text: String) -> String? {
        let parts = text.split(separator: "'", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[2].utf8.allSatisfy({ self.isPlain($0) || $0 == UInt8(ascii: "%") }) else {
            return nil
        }
        let bytes = PercentCoding.decoded(parts[2].utf8)
        if parts[0].matchesIgnoringCase("UTF-8") { return String(validating: bytes, as: UTF8.self) }
        guard parts[0].matchesIgnoringCase("ISO-8859-1") else { return nil }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    /// `attr-char`: what stands for itself.
    static func isPlain(_ byte: UInt8) -> Bool {
        byte.isTokenCharacter && !"*'%".utf8.contains(byte)
    }
}
