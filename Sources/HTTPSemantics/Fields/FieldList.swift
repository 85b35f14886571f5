import HTTPTypes
import WireText

/// Comma-separated lists in field values (RFC 9110 §5.6.1).
enum FieldList {
    /// Most elements; no legitimate list has more.
    static let limit = 256

    /// The elements of all lines of one field, in order, trimmed and without empty ones. Commas in quoted strings do
    /// not separate elements.
    static func elements(_ lines: [String]) -> [String] {
        var elements: [String] = []
        for line in lines {
            var scanner = FieldValueScanner(line)
            while !scanner.isAtEnd, elements.count < self.limit {
                let element = scanner.rawText(to: ",").trimmingBlanks
                if !element.isEmpty { elements.append(element) }
                _ = scanner.skip(",")
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
    /// backslash, as in Foundation's Content-Disposition parser. A quote that is not terminated is left out.
    static func list(_ scanner: inout FieldValueScanner) -> [Self] {
        var parameters: [Self] = []
        while !scanner.isAtEnd, parameters.count < self.limit {
            scanner.skip(to: ";")
            guard scanner.skip(";") else { break }
            scanner.skipWhitespace()
            guard let name = scanner.token() else { continue }
            scanner.skipWhitespace()
            guard scanner.skip("=") else { continue }
            scanner.skipWhitespace()
            let value = scanner.quotedString() ?? self.bareValue(&scanner)
            parameters.append(Self(name: name.loweredASCII, value: value))
        }
        return parameters
    }

    private static func bareValue(_ scanner: inout FieldValueScanner) -> String {
        _ = scanner.skip("\"")
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

    static func known(_ name: String) -> Self {
        Self(name) ?? .via
    }
}
