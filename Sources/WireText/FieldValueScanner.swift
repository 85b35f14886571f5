/// Scans a field value: tokens, quoted strings, list elements (RFC 9110 §5.6).
///
/// A failed read leaves the position unchanged, except that of a quoted token.
package struct FieldValueScanner {
    private let bytes: [UInt8]
    package private(set) var offset = 0

    package init(_ value: String) {
        self.bytes = Array(value.utf8)
    }

    package var isAtEnd: Bool { self.offset == self.bytes.count }

    /// The next byte; `nil` at the end.
    package var current: UInt8? { self.isAtEnd ? nil : self.bytes[self.offset] }

    /// Goes back to an earlier position.
    package mutating func rewind(to offset: Int) {
        self.offset = min(max(offset, 0), self.bytes.count)
    }

    package mutating func skipWhitespace() {
        while let byte = self.current, byte.isBlank { self.offset += 1 }
    }

    package mutating func skip(_ delimiter: Unicode.Scalar) -> Bool {
        guard let byte = self.current, UInt32(byte) == delimiter.value else { return false }
        self.offset += 1
        return true
    }

    /// Reads the longest run of bytes for which `isWanted` is true, possibly empty.
    package mutating func text(while isWanted: (UInt8) -> Bool) -> String {
        let start = self.offset
        while let byte = self.current, isWanted(byte) { self.offset += 1 }
        return String(decoding: self.bytes[start..<self.offset], as: UTF8.self)
    }

    /// Reads a token; `nil` if there is none.
    package mutating func token() -> String? {
        let token = self.text(while: \.isTokenCharacter)
        return token.isEmpty ? nil : token
    }

    /// Reads a quoted string and removes its escapes; `nil` if there is none, or it is not terminated.
    package mutating func quotedString() -> String? {
        guard self.current == UInt8(ascii: "\"") else { return nil }
        var content: [UInt8] = []
        var index = self.offset + 1
        while index < self.bytes.count {
            switch self.bytes[index] {
            case UInt8(ascii: "\""):
                self.offset = index + 1
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\") where index + 1 < self.bytes.count:
                content.append(self.bytes[index + 1])
                index += 2
            case let byte:
                content.append(byte)
                index += 1
            }
        }
        return nil
    }

    /// Reads a quoted string, whose content must be a token (RFC 6455 §9.1); after a failure, `offset` is that of the error.
    package mutating func quotedToken() -> String? {
        guard self.skip("\"") else { return nil }
        var content: [UInt8] = []
        while let byte = self.current {
            if self.skip("\"") { return content.isEmpty ? nil : String(decoding: content, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") { self.offset += 1 }
            guard let byte = self.current, byte.isTokenCharacter else { return nil }
            content.append(byte)
            self.offset += 1
        }
        return nil
    }

    /// Skips to the next `delimiter` outside quoted strings, or to the end. A quote that is not terminated is an ordinary
    /// character.
    package mutating func skip(to delimiter: Unicode.Scalar) {
        while let byte = self.current, UInt32(byte) != delimiter.value {
            if byte == UInt8(ascii: "\""), self.quotedString() != nil { continue }
            self.offset += 1
        }
    }

    /// Reads the raw text up to the next `delimiter` outside quoted strings, or to the end.
    package mutating func rawText(to delimiter: Unicode.Scalar) -> String {
        let start = self.offset
        self.skip(to: delimiter)
        return String(decoding: self.bytes[start..<self.offset], as: UTF8.self)
    }

    /// Reads the next element of a comma-separated list, trimmed; `nil` at the end. Commas in quoted strings do not
    /// separate; a quote that is not terminated extends to the end, so that a hostile head is read once only.
    package mutating func listElement() -> String? {
        while !self.isAtEnd {
            self.skipWhitespace()
            let start = self.offset
            self.skipToComma()
            var end = self.offset
            while end > start, self.bytes[end - 1].isBlank { end -= 1 }
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
