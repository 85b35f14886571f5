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
