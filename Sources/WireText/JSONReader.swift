/// Reads JSON text (RFC 8259) value by value, without building a tree.
///
/// A value that is skipped is checked too, so a whole text that was read or skipped is valid. Nesting is limited, and
/// no read is recursive beyond that limit. The bytes must be valid UTF-8.
package struct JSONReader: Sendable {
    /// Nesting of arrays and objects that is accepted unless the initializer says otherwise.
    package static let usualDepth = 64

    private let bytes: [UInt8]
    package private(set) var offset: Int
    private let end: Int
    private let maximumDepth: Int
    private var depth = 0

    /// - Parameters:
    ///   - range: the part of `bytes` to read; all of them by default.
    ///   - maximumDepth: nesting of arrays and objects above which reading fails.
    package init(_ bytes: [UInt8], in range: Range<Int>? = nil, maximumDepth: Int = Self.usualDepth) {
        self.bytes = bytes
        self.offset = range?.lowerBound ?? 0
        self.end = range?.upperBound ?? bytes.count
        self.maximumDepth = maximumDepth
    }

    /// Kind of the next value; `nil` if there is none, or a byte that begins no value.
    package enum Kind: Sendable, Equatable {
        case object, array, string, number, boolean, null
    }

    package mutating func nextKind() -> Kind? {
        self.skipWhitespace()
        return self.current.flatMap(Self.kind)
    }

    private static func kind(_ byte: UInt8) -> Kind? {
        switch byte {
        case UInt8(ascii: "{"): .object
        case UInt8(ascii: "["): .array
        case UInt8(ascii: "\""): .string
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): .number
        case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
        case UInt8(ascii: "n"): .null
        default: nil
        }
    }

    /// Whether only whitespace is left.
    package mutating func isAtEnd() -> Bool {
        self.skipWhitespace()
        return self.offset == self.end
    }

    /// - Throws: if anything but whitespace is left.
    package mutating func finish() throws(JSONSyntaxError) {
        guard self.isAtEnd() else { throw self.error(.trailingBytes) }
    }

    /// Reads a document that is one object. `body` must read or skip the value of each member.
    /// - Returns: whether `bytes` is such a document. `body` may have been called before the first error.
    package static func readDocument(
        _ bytes: [UInt8], _ body: (_ name: MemberName, _ value: inout JSONReader) throws(JSONSyntaxError) -> Void
    ) -> Bool {
        var reader = JSONReader(bytes)
        do throws(JSONSyntaxError) {
            try reader.readObject(body)
            try reader.finish()
            return true
        } catch {
            return false
        }
    }

    // MARK: Containers

    /// Calls `body` for each member of the next value, an object. `body` must read or skip the member's value.
    package mutating func readObject(
        _ body: (_ name: MemberName, _ value: inout JSONReader) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        try self.open(UInt8(ascii: "{"))
        var isFirst = true
        while try !self.closes(with: UInt8(ascii: "}"), isFirst: isFirst) {
            isFirst = false
            let name = MemberName(try self.readString())
            try self.expect(UInt8(ascii: ":"))
            try body(name, &self)
        }
    }

    /// Calls `body` for each element of the next value, an array. `body` must read or skip the element.
    package mutating func readArray(
        _ body: (inout JSONReader) throws(JSONSyntaxError) -> Void
    ) throws(JSONSyntaxError) {
        try self.open(UInt8(ascii: "["))
        var isFirst = true
        while try !self.closes(with: UInt8(ascii: "]"), isFirst: isFirst) {
            isFirst = false
            try body(&self)
        }
    }

    package mutating func readStrings() throws(JSONSyntaxError) -> [String] {
        var strings: [String] = []
        try self.readArray { (element) throws(JSONSyntaxError) in strings.append(try element.readString()) }
        return strings
    }

    private mutating func open(_ bracket: UInt8) throws(JSONSyntaxError) {
        try self.expect(bracket)
        guard self.depth < self.maximumDepth else { throw self.error(.tooDeep(limit: self.maximumDepth)) }
        self.depth += 1
    }

    /// Reads the comma before the next element, or the closing bracket.
    private mutating func closes(with bracket: UInt8, isFirst: Bool) throws(JSONSyntaxError) -> Bool {
        self.skipWhitespace()
        if self.current == bracket {
            self.offset += 1
            self.depth -= 1
            return true
        }
        if !isFirst { try self.expect(UInt8(ascii: ",")) }
        return false
    }

    // MARK: Scalars

    package mutating func readString() throws(JSONSyntaxError) -> String {
        let (content, hasEscapes) = try self.scanString()
        guard hasEscapes else { return String(decoding: self.bytes[content], as: UTF8.self) }
        return Self.unescaped(self.bytes[content]).text
    }

    /// - Returns: `nil` for a string with half of a surrogate pair, in place of which `readString()` puts U+FFFD.
    package mutating func readWholeString() throws(JSONSyntaxError) -> String? {
        let (content, hasEscapes) = try self.scanString()
        guard hasEscapes else { return String(decoding: self.bytes[content], as: UTF8.self) }
        let (text, isWhole) = Self.unescaped(self.bytes[content])
        return isWhole ? text : nil
    }

    package mutating func readBool() throws(JSONSyntaxError) -> Bool {
        self.skipWhitespace()
        if self.skip(literal: "true") { return true }
        if self.skip(literal: "false") { return false }
        throw self.error(.unexpected(expected: "true or false"))
    }

    /// Reads `null` if it is next.
    package mutating func skipNull() -> Bool {
        self.skipWhitespace()
        return self.skip(literal: "null")
    }

    /// Reads a whole number from 0 to `UInt64.max`, without fraction and exponent.
    package mutating func readUInt64() throws(JSONSyntaxError) -> UInt64 {
        let number = try self.scanNumber()
        guard let value = UInt64(String(decoding: self.bytes[number], as: UTF8.self)) else {
            throw self.error(.unexpected(expected: "a whole number from 0 to \(UInt64.max)"))
        }
        return value
    }

    /// Reads a whole number, without fraction and exponent.
    package mutating func readInt() throws(JSONSyntaxError) -> Int {
        let number = try self.scanNumber()
        guard let value = Int(String(decoding: self.bytes[number], as: UTF8.self)) else {
            throw self.error(.unexpected(expected: "a whole number from \(Int.min) to \(Int.max)"))
        }
        return value
    }

    /// Reads any number. One beyond the range of `Double` is infinite.
    package mutating func readDouble() throws(JSONSyntaxError) -> Double {
        let number = try self.scanNumber()
        guard let value = Double(String(decoding: self.bytes[number], as: UTF8.self)) else {
            throw self.error(.unexpected(expected: "a number"))
        }
        return value
    }

    // MARK: Skipping

    /// Checks the next value of any kind without decoding it.
    /// - Returns: the bytes of the value, without whitespace around it.
    @discardableResult
    package mutating func skipValue() throws(JSONSyntaxError) -> Range<Int> {
        guard let kind = self.nextKind() else { throw self.error(.unexpected(expected: "a JSON value")) }
        let start = self.offset
        switch kind {
        case .object:
            try self.open(UInt8(ascii: "{"))
            var isFirst = true
            while try !self.closes(with: UInt8(ascii: "}"), isFirst: isFirst) {
                isFirst = false
                _ = try self.scanString()
                try self.expect(UInt8(ascii: ":"))
                try self.skipValue()
            }
        case .array: try self.readArray { (element) throws(JSONSyntaxError) in try element.skipValue() }
        case .string: _ = try self.scanString()
        case .number: _ = try self.scanNumber()
        case .boolean: _ = try self.readBool()
        case .null:
            guard self.skipNull() else { throw self.error(.unexpected(expected: "null")) }
        }
        return start..<self.offset
    }

    /// Skips the next value and returns its text, on one line.
    package mutating func readRaw() throws(JSONSyntaxError) -> [UInt8] {
        let range = try self.skipValue()
        return Self.onOneLine(Array(self.bytes[range]))
    }

    /// JSON text without its line breaks, which occur only between tokens: within strings they are escaped.
    package static func onOneLine(_ text: [UInt8]) -> [UInt8] {
        self.isOnOneLine(text) ? text : text.filter { $0 != 0x0A && $0 != 0x0D }
    }

    package static func isOnOneLine(_ text: [UInt8]) -> Bool {
        !text.contains { $0 == 0x0A || $0 == 0x0D }
    }

    // MARK: Bytes

    private var current: UInt8? { self.offset < self.end ? self.bytes[self.offset] : nil }

    private mutating func skipWhitespace() {
        while self.offset < self.end {
            switch self.bytes[self.offset] {
            case 0x20, 0x0A, 0x0D, 0x09: self.offset += 1
            default: return
            }
        }
    }

    private mutating func expect(_ byte: UInt8) throws(JSONSyntaxError) {
        self.skipWhitespace()
        guard self.current == byte else {
            throw self.error(.unexpected(expected: "\(Character(Unicode.Scalar(byte)))"))
        }
        self.offset += 1
    }

    private mutating func skip(literal: String) -> Bool {
        let end = self.offset + literal.utf8.count
        guard end <= self.end, literal.utf8.elementsEqual(self.bytes[self.offset..<end]) else { return false }
        self.offset = end
        return true
    }

    /// - Returns: the bytes between the quotes, and whether some of them are escaped.
    private mutating func scanString() throws(JSONSyntaxError) -> (content: Range<Int>, hasEscapes: Bool) {
        try self.expect(UInt8(ascii: "\""))
        let start = self.offset
        var hasEscapes = false
        while let byte = self.current {
            switch byte {
            case UInt8(ascii: "\""):
                self.offset += 1
                return (start..<(self.offset - 1), hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                try self.skipEscape()
            case 0..<0x20: throw self.error(.unexpected(expected: "an escaped control character"))
            default: self.offset += 1
            }
        }
        throw self.error(.unexpected(expected: "a closing quote"))
    }

    private mutating func skipEscape() throws(JSONSyntaxError) {
        self.offset += 1
        switch self.current {
        case UInt8(ascii: "u"):
            let digits = self.bytes[min(self.offset + 1, self.end)..<min(self.offset + 5, self.end)]
            guard digits.count == 4, digits.allSatisfy({ $0.hexadecimalValue != nil }) else {
                throw self.error(.unexpected(expected: "four hexadecimal digits"))
            }
            self.offset += 5
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            self.offset += 1
        default: throw self.error(.unexpected(expected: "an escape of RFC 8259"))
        }
    }

    private mutating func scanNumber() throws(JSONSyntaxError) -> Range<Int> {
        self.skipWhitespace()
        let start = self.offset
        if self.current == UInt8(ascii: "-") { self.offset += 1 }
        if self.current == UInt8(ascii: "0") {
            self.offset += 1
        } else {
            try self.scanDigits()
        }
        if self.current == UInt8(ascii: ".") {
            self.offset += 1
            try self.scanDigits()
        }
        if self.current == UInt8(ascii: "e") || self.current == UInt8(ascii: "E") {
            self.offset += 1
            if self.current == UInt8(ascii: "+") || self.current == UInt8(ascii: "-") { self.offset += 1 }
            try self.scanDigits()
        }
        return start..<self.offset
    }

    private mutating func scanDigits() throws(JSONSyntaxError) {
        let start = self.offset
        while let byte = self.current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { self.offset += 1 }
        guard self.offset > start else { throw self.error(.unexpected(expected: "a digit")) }
    }

    private func error(_ problem: JSONSyntaxError.Problem) -> JSONSyntaxError {
        JSONSyntaxError(problem, at: self.offset)
    }

    // MARK: Escapes

    /// Replaces the escapes of a scanned string. Half of a surrogate pair becomes U+FFFD.
    /// - Returns: the text, and whether it had no such half.
    private static func unescaped(_ content: ArraySlice<UInt8>) -> (text: String, isWhole: Bool) {
        var isWhole = true
        var bytes: [UInt8] = []
        bytes.reserveCapacity(content.count)
        var index = content.startIndex
        while index < content.endIndex {
            guard content[index] == UInt8(ascii: "\\"), index + 1 < content.endIndex else {
                bytes.append(content[index])
                index += 1
                continue
            }
            guard let unit = Self.codeUnit(content, at: index) else {
                bytes.append(Self.escaped(content[index + 1]))
                index += 2
                continue
            }
            index += 6
            var scalar = Unicode.Scalar(unit) ?? "\u{FFFD}"
            if UTF16.isLeadSurrogate(unit), let low = Self.codeUnit(content, at: index), UTF16.isTrailSurrogate(low) {
                index += 6
                let value = 0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(low) - 0xDC00)
                scalar = Unicode.Scalar(value) ?? "\u{FFFD}"
            } else if UTF16.isSurrogate(unit) {
                isWhole = false
            }
            bytes.append(contentsOf: String(Character(scalar)).utf8)
        }
        return (String(decoding: bytes, as: UTF8.self), isWhole)
    }

    /// The UTF-16 code unit of an escape `\u0041` at `index`; `nil` if there is none.
    private static func codeUnit(_ content: ArraySlice<UInt8>, at index: Int) -> UInt16? {
        guard index + 5 < content.endIndex, content[index] == UInt8(ascii: "\\"),
            content[index + 1] == UInt8(ascii: "u")
        else { return nil }
        return content[(index + 2)..<(index + 6)].reduce(0) { $0 << 4 | UInt16($1.hexadecimalValue ?? 0) }
    }

    private static func escaped(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: byte
        }
    }
}

/// Text that is not JSON, or nests too deeply, or has a value of another type than the reader asked for.
package struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
    package enum Problem: Equatable, Sendable {
        case unexpected(expected: String)
        case tooDeep(limit: Int)
        case trailingBytes
        /// A value that the text's own rules forbid.
        case invalid(String)
    }

    package let problem: Problem
    /// In bytes from the beginning of the text.
    package let offset: Int

    package init(_ problem: Problem, at offset: Int) {
        self.problem = problem
        self.offset = offset
    }

    package var description: String {
        switch self.problem {
        case .unexpected(let expected): "expected \(expected) at byte \(self.offset)"
        case .tooDeep(let limit): "more than \(limit) nested arrays and objects at byte \(self.offset)"
        case .trailingBytes: "unexpected text after the value at byte \(self.offset)"
        case .invalid(let text): "\(text) at byte \(self.offset)"
        }
    }
}
