/// Splits Swift source into tokens, exactly enough for the rules of the house: nested comments, string literals of
/// every kind with their interpolations, words and signs. Regular-expression literals are not known to it.
struct Tokenizer {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    private var touches = false
    private var tokens: [Token] = []

    private init(_ text: String) {
        self.bytes = Array(text.utf8)
    }

    static func tokens(of text: String) -> [Token] {
        var tokenizer = Tokenizer(text)
        tokenizer.readCode(untilClosingParenthesis: false)
        return tokenizer.tokens
    }

    static func isWordByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), 0x80...: true
        default: false
        }
    }

    private func byte(at offset: Int = 0) -> UInt8? {
        let index = self.position + offset
        return index < self.bytes.count ? self.bytes[index] : nil
    }

    private func follows(_ text: StaticString) -> Bool {
        text.withUTF8Buffer { self.bytes[self.position...].starts(with: $0) }
    }

    private mutating func advance(_ count: Int = 1) {
        for _ in 0..<count where self.position < self.bytes.count {
            if self.bytes[self.position] == UInt8(ascii: "\n") { self.line += 1 }
            self.position += 1
        }
    }

    private mutating func emit(_ text: String, line: Int) {
        self.tokens.append(Token(text: text, line: line, touchesPrevious: self.touches))
        self.touches = true
    }

    private mutating func readCode(untilClosingParenthesis: Bool) {
        var depth = 0
        while let byte = self.byte() {
            if self.skipBlankOrComment() { continue }
            if let hashes = self.hashesBeforeString() {
                self.readString(hashes: hashes)
            } else if Self.isWordByte(byte) {
                self.readWord()
            } else {
                if byte == UInt8(ascii: "(") { depth += 1 }
                if byte == UInt8(ascii: ")") { depth -= 1 }
                if untilClosingParenthesis, depth < 0 { return }
                self.emit(String(UnicodeScalar(byte)), line: self.line)
                self.advance()
            }
        }
    }

    private mutating func readWord() {
        let start = self.position
        while let byte = self.byte(), Self.isWordByte(byte) { self.advance() }
        self.emit(String(decoding: self.bytes[start..<self.position], as: UTF8.self), line: self.line)
    }

    private mutating func skipBlankOrComment() -> Bool {
        if let byte = self.byte(), byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\t")
        {
            self.advance()
        } else if self.follows("//") {
            while let byte = self.byte(), byte != UInt8(ascii: "\n") { self.advance() }
        } else if self.follows("/*") {
            self.skipBlockComment()
        } else {
            return false
        }
        self.touches = false
        return true
    }

    private mutating func skipBlockComment() {
        var depth = 0
        repeat {
            if self.follows("/*") {
                depth += 1
                self.advance(2)
            } else if self.follows("*/") {
                depth -= 1
                self.advance(2)
            } else {
                self.advance()
            }
        } while depth > 0 && self.byte() != nil
    }

    /// The number of `#` before a string literal that begins here; `nil` when none begins here.
    private func hashesBeforeString() -> Int? {
        var count = 0
        while self.byte(at: count) == UInt8(ascii: "#") { count += 1 }
        return self.byte(at: count) == UInt8(ascii: "\"") ? count : nil
    }

    private func hashesFollow(_ count: Int, after offset: Int) -> Bool {
        (0..<count).allSatisfy { self.byte(at: offset + $0) == UInt8(ascii: "#") }
    }

    private mutating func readString(hashes: Int) {
        self.emit("\"", line: self.line)
        self.advance(hashes)
        let quotes = self.follows("\"\"\"") ? 3 : 1
        self.advance(quotes)
        while let byte = self.byte() {
            if byte == UInt8(ascii: "\\"), self.hashesFollow(hashes, after: 1) {
                self.advance(1 + hashes)
                self.readEscape()
            } else if quotes == 3 ? self.follows("\"\"\"") : byte == UInt8(ascii: "\""),
                self.hashesFollow(hashes, after: quotes)
            {
                self.advance(quotes + hashes)
                return
            } else if quotes == 1, byte == UInt8(ascii: "\n") {
                return  // No such literal compiles; continuing keeps one mistake from hiding the rest of the file.
            } else {
                self.advance()
            }
        }
    }

    private mutating func readEscape() {
        guard self.byte() == UInt8(ascii: "(") else { return self.advance() }
        self.advance()
        self.touches = false
        self.readCode(untilClosingParenthesis: true)
        self.advance()
        self.touches = true
    }
}
