/// Text that comes in pieces cut anywhere: a character that is cut waits for its rest.
package struct StreamedText: Sendable {
    /// At most three bytes: the beginning of one character.
    private var rest: [UInt8] = []

    package init() {}

    /// The text of what is whole by now; bytes that are no UTF-8 become U+FFFD.
    package mutating func text(_ bytes: [UInt8]) -> String {
        var all = self.rest + bytes
        let cut = Self.unfinished(all)
        self.rest = Array(all.suffix(cut))
        all.removeLast(cut)
        return String(decoding: all, as: UTF8.self)
    }

    /// Bytes at the end that begin a character and do not finish it.
    private static func unfinished(_ bytes: [UInt8]) -> Int {
        for (behind, byte) in bytes.reversed().prefix(4).enumerated() where byte & 0xC0 != 0x80 {
            let length =
                switch byte {
                case 0xC2...0xDF: 2
                case 0xE0...0xEF: 3
                case 0xF0...0xF4: 4
                default: 1
                }
            return behind + 1 < length ? behind + 1 : 0
        }
        return 0
    }
}
