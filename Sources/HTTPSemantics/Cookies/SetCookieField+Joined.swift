extension SetCookieField {
    /// Cookies beyond this many in one text are not read.
    package static let joinedLimit = 256

    /// Takes apart several cookies that were joined into one text by commas, as a dictionary of fields holds them.
    ///
    /// A comma parts two cookies where a token and an equals sign follow: not that of a date, nor that of a sentence.
    /// The joining cannot be undone for sure, so whoever has the lines apart reads them one by one instead.
    package static func joined(_ text: String) -> [Self] {
        let bytes = Array(text.utf8)
        var fields: [Self] = []
        var start = 0
        for index in bytes.indices where fields.count < self.joinedLimit {
            let isEnd = index == bytes.count - 1
            guard isEnd || bytes[index] == UInt8(ascii: ",") && self.beginsCookie(bytes[(index + 1)...]) else {
                continue
            }
            let piece = bytes[start..<(isEnd ? bytes.count : index)]
            if let field = Self(self.withoutLineEnds(piece)) { fields.append(field) }
            start = index + 1
        }
        return fields
    }

    /// Whether a name and an equals sign stand here, which is how the next cookie begins.
    private static func beginsCookie(_ bytes: ArraySlice<UInt8>) -> Bool {
        let rest = bytes.drop { $0.isBlank || $0 == 0x0A || $0 == 0x0D }
        let name = rest.prefix(while: \.isTokenCharacter)
        let behind = rest.dropFirst(name.count).drop(while: \.isBlank)
        return !name.isEmpty && behind.first == UInt8(ascii: "=")
    }

    private static func withoutLineEnds(_ bytes: ArraySlice<UInt8>) -> String {
        let isBlank = { (byte: UInt8) in byte.isBlank || byte == 0x0A || byte == 0x0D }
        let end = bytes.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? bytes.startIndex
        return String(decoding: bytes[..<end].drop(while: isBlank), as: UTF8.self)
    }
}
