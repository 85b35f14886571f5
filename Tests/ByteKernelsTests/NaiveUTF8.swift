/// The obvious twin of `UTF8Validator`: the table of well-formed sequences of RFC 3629 §4, tried row by row.
enum NaiveUTF8 {
    private static let rows: [[ClosedRange<UInt8>]] = [
        [0x00...0x7F],
        [0xC2...0xDF, 0x80...0xBF],
        [0xE0...0xE0, 0xA0...0xBF, 0x80...0xBF],
        [0xE1...0xEC, 0x80...0xBF, 0x80...0xBF],
        [0xED...0xED, 0x80...0x9F, 0x80...0xBF],
        [0xEE...0xEF, 0x80...0xBF, 0x80...0xBF],
        [0xF0...0xF0, 0x90...0xBF, 0x80...0xBF, 0x80...0xBF],
        [0xF1...0xF3, 0x80...0xBF, 0x80...0xBF, 0x80...0xBF],
        [0xF4...0xF4, 0x80...0x8F, 0x80...0xBF, 0x80...0xBF],
    ]

    /// The first offset no continuation could save, and whether the text ends between two characters.
    static func judge(_ bytes: [UInt8]) -> (fault: Int?, isComplete: Bool) {
        var start = 0
        while start < bytes.count {
            let length = self.longestMatch(bytes[start...])
            if length.isWhole {
                start += length.count
            } else if start + length.count == bytes.count {
                return (nil, false)
            } else {
                return (start + length.count, true)
            }
        }
        return (nil, true)
    }

    private static func longestMatch(_ bytes: ArraySlice<UInt8>) -> (count: Int, isWhole: Bool) {
        var longest = 0
        for row in self.rows {
            let matched = zip(bytes, row).prefix { $0.1.contains($0.0) }.count
            if matched == row.count { return (matched, true) }
            longest = max(longest, matched)
        }
        return (longest, false)
    }
}
