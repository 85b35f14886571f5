import HTTPTypes
import WireText

/// Scans field values: tokens, quoted strings, blanks (RFC 9110 §5.6).
///
/// A failed read leaves the position unchanged.
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

    mutating func skip(_ byte: UInt8) -> Bool {
        guard self.current == byte else { return false }
        self.position += 1
        return true
    }

    /// Reads the longest run of bytes for which `isWanted` is true, possibly empty.
    mutating func text(while isWanted: (UInt8) -> Bool) -> String {
        let start = self.position
        while let byte = self.current, isWanted(byte) { self.position += 1 }
        return String(decoding: self.bytes[start..<self.position], as: UTF8.self)
    }

    mutating func token() -> String? {
        let token = self.text(while: \.isTokenCharacter)
        return token.isEmpty ? nil : token
    }

    /// Reads a quoted string and removes its escapes; `nil` if there is none, or it is not terminated.
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

    /// Skips to the next `separator` outside quoted strings, or to the end.
    mutating func skip(to separator: UInt8) {
        while let byte = self.current, byte != separator {
            if byte == UInt8(ascii: "\""), self.quotedString() != nil { continue }
            self.position += 1
        }
    }

    /// Reads the raw text up to the next `separator` outside quoted strings, or to the end.
    mutating func rawText(to separator: UInt8) -> String {
        let start = self.position
        self.skip(to: separator)
        return String(decoding: self.bytes[start..<self.position], as: UTF8.self)
    }
}

/// Comma-separated lists in field values (RFC 9110 §5.6.1).
enum FieldList {
    /// Most elements; no legitimate list has more.
    static let limit = 256

    /// The elements of all lines of one field, in order, trimmed and without empty ones. Commas in quoted strings do
    /// not separate elements.
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

/// A parameter `;name=value` (RFC 9110 §5.6.6).
struct FieldParameter: Equatable {
    /// Most parameters; further ones are ignored.
    static let limit = 64

    /// In lower case.
    let name: String
    let value: String

    /// Reads all parameters; names without a value are left out.
    ///
    /// A value that is neither token nor quoted string extends to the next semicolon that is not escaped by a
    /// backslash, as in Foundation's Content-Disposition parser.
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
    // Names for which swift-http-types has no constant. All are tokens.
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
