/// Walks over the value of a header field, piece by piece of its grammar (RFC 9110 §5.6).
struct FieldValueScanner {
    private let bytes: [UInt8]
    /// Bytes read so far.
    private(set) var offset = 0

    init(_ value: String) {
        self.bytes = Array(value.utf8)
    }

    var isAtEnd: Bool { self.offset == self.bytes.count }

    mutating func skipWhitespace() {
        while self.offset < self.bytes.count, self.bytes[self.offset].isFieldWhitespace { self.offset += 1 }
    }

    /// - Returns: whether `delimiter` was next, in which case it is behind us.
    mutating func skip(_ delimiter: Unicode.Scalar) -> Bool {
        guard self.offset < self.bytes.count, UInt32(self.bytes[self.offset]) == delimiter.value else { return false }
        self.offset += 1
        return true
    }

    /// - Returns: the token that is next; `nil` when none is, with nothing read.
    mutating func token() -> String? {
        let start = self.offset
        while self.offset < self.bytes.count, self.bytes[self.offset].isTokenCharacter { self.offset += 1 }
        return self.offset > start ? String(decoding: self.bytes[start..<self.offset], as: UTF8.self) : nil
    }

    /// - Returns: what a quoted string holds, which must itself be a token (RFC 6455 §9.1).
    mutating func quotedToken() -> String? {
        guard self.skip("\"") else { return nil }
        var content: [UInt8] = []
        while self.offset < self.bytes.count {
            if self.skip("\"") {
                return content.isEmpty ? nil : String(decoding: content, as: UTF8.self)
            }
            _ = self.skip("\\")
            guard self.offset < self.bytes.count, self.bytes[self.offset].isTokenCharacter else { return nil }
            content.append(self.bytes[self.offset])
            self.offset += 1
        }
        return nil
    }

    /// - Returns: the next element of a comma-separated list, trimmed, with quoted strings kept whole; `nil` at the
    ///   end.
    mutating func listElement() -> String? {
        while !self.isAtEnd {
            self.skipWhitespace()
            let start = self.offset
            self.skipToComma()
            var end = self.offset
            while end > start, self.bytes[end - 1].isFieldWhitespace { end -= 1 }
            _ = self.skip(",")
            if end > start { return String(decoding: self.bytes[start..<end], as: UTF8.self) }
        }
        return nil
    }

    private mutating func skipToComma() {
        var isQuoted = false
        while self.offset < self.bytes.count {
            switch self.bytes[self.offset] {
            case UInt8(ascii: ",") where !isQuoted: return
            case UInt8(ascii: "\""): isQuoted.toggle()
            case UInt8(ascii: "\\") where isQuoted && self.offset + 1 < self.bytes.count: self.offset += 1
            default: break
            }
            self.offset += 1
        }
    }
}
