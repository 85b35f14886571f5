/// Reads the small grammars of field values: tokens, quoted strings, blanks (RFC 9110 §5.6).
///
/// A reading that does not succeed leaves the position where it was, unless it says otherwise.
struct FieldScanner {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ text: some StringProtocol) {
        self.bytes = Array(text.utf8)
    }

    var isAtEnd: Bool { self.position >= self.bytes.count }

    var current: UInt8? { self.isAtEnd ? nil : self.bytes[self.position] }

    mutating func rewind(to position: Int) {
        self.position = min(max(position, 0), self.bytes.count)
    }

    mutating func skipBlanks() {
        while let byte = self.current, byte.isBlank { self.position += 1 }
    }

    /// Steps over `byte` where it stands here.
    mutating func skip(_ byte: UInt8) -> Bool {
        guard self.current == byte else { return false }
        self.position += 1
        return true
    }

    /// The longest run of bytes that `isWanted`, perhaps empty.
    mutating func text(while isWanted: (UInt8) -> Bool) -> String {
        let start = self.position
        while let byte = self.current, isWanted(byte) { self.position += 1 }
        return String(decoding: self.bytes[start..<self.position], as: UTF8.self)
    }

    /// A token that is not empty.
    mutating func token() -> String? {
        let token = self.text(while: \.isTokenCharacter)
        return token.isEmpty ? nil : token
    }

    /// What a quoted string stands for, its escapes undone; `nil` where none begins here, or where it does not end.
    mutating func quotedString() -> String? {
        guard self.current == UInt8(ascii: "\"") else { return nil }
        var content: [UInt8] = []
        var index = self.position + 1
        while index < self.bytes.count {
            switch self.bytes[index] {
            case UInt8(ascii: "\""):
                self.position = index + 1
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

    /// Goes on to the next `separator` that is in no quoted string, or to the end.
    mutating func skip(to separator: UInt8) {
        while let byte = self.current, byte != separator {
            if byte == UInt8(ascii: "\""), self.quotedString() != nil { continue }
            self.position += 1
        }
    }

    /// The raw text up to the next `separator` that is in no quoted string.
    mutating func rawText(to separator: UInt8) -> String {
        let start = self.position
        self.skip(to: separator)
        return String(decoding: self.bytes[start..<self.position], as: UTF8.self)
    }
}
