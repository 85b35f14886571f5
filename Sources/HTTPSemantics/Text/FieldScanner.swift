import HTTPTypes

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

/// The lists that field values are made of (RFC 9110 §5.6.1).
enum FieldList {
    /// Elements beyond this many are not read: no honest list comes near.
    static let limit = 256

    /// The elements of all the lines of one field, in order, without blanks around them; empty ones are left out.
    /// A comma in a quoted string separates nothing.
    static func elements(_ lines: [String]) -> [String] {
        var elements: [String] = []
        for line in lines {
            var scanner = FieldScanner(line)
            while !scanner.isAtEnd, elements.count < self.limit {
                let element = scanner.rawText(to: UInt8(ascii: ",")).trimmingBlanks
                if !element.isEmpty { elements.append(element) }
                _ = scanner.skip(UInt8(ascii: ","))
            }
        }
        return elements
    }
}

/// One `name=value` behind a semicolon (RFC 9110 §5.6.6).
struct FieldParameter: Equatable {
    /// Parameters beyond this many are not read.
    static let limit = 64

    /// In lower case.
    let name: String
    let value: String

    /// Reads `; name=value` as often as it stands there. Names without a value are left out.
    ///
    /// A value that is neither token nor quoted string goes to the next semicolon; a backslash takes its meaning from
    /// the character behind it, as in a quoted string: that is how Foundation reads Content-Disposition.
    static func list(_ scanner: inout FieldScanner) -> [Self] {
        var parameters: [Self] = []
        while !scanner.isAtEnd, parameters.count < self.limit {
            scanner.skip(to: UInt8(ascii: ";"))
            guard scanner.skip(UInt8(ascii: ";")) else { break }
            scanner.skipBlanks()
            guard let name = scanner.token() else { continue }
            scanner.skipBlanks()
            guard scanner.skip(UInt8(ascii: "=")) else { continue }
            scanner.skipBlanks()
            let value = scanner.quotedString() ?? self.bareValue(&scanner)
            parameters.append(Self(name: name.loweredASCII, value: value))
        }
        return parameters
    }

    private static func bareValue(_ scanner: inout FieldScanner) -> String {
        var isEscaped = false
        let value = scanner.text { byte in
            if !isEscaped, byte == UInt8(ascii: ";") { return false }
            isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
            return true
        }
        return value.trimmingBlanks
    }
}

extension HTTPField.Name {
    /// Names that the package of HTTP types has no constant for. All are tokens.
    static let pragma = Self.known("Pragma")
    static let keepAlive = Self.known("Keep-Alive")
    static let proxyConnection = Self.known("Proxy-Connection")
    static let contentDigest = Self.known("Content-Digest")
    static let digest = Self.known("Digest")
    static let hostName = Self.known("Host")
    static let contentMD5 = Self.known("Content-MD5")

    private static func known(_ name: String) -> Self {
        Self(name) ?? .via
    }
}
