/// One line of the log: a constant message with named values. What peers say in them cannot forge a line or end a string.
package struct LogLine: Sendable {
    package enum Value: Sendable {
        case text(String)
        case number(UInt64)
    }

    private let message: String
    private let fields: [(String, Value)]

    package init(_ message: String, _ fields: [(String, Value)]) {
        self.message = message
        self.fields = fields
    }

    /// - Parameter time: RFC 3339.
    package func rendered(_ format: LogSettings.Format, at time: String) -> String {
        switch format {
        case .text: self.text(time)
        case .json: self.json(time)
        }
    }

    private func text(_ time: String) -> String {
        self.fields.reduce("\(time) info \(self.message)") { line, field in
            switch field.1 {
            case .number(let number): line + " \(field.0)=\(number)"
            case .text(let text): line + " \(field.0)=\(Self.word(text))"
            }
        }
    }

    private func json(_ time: String) -> String {
        let start = "{\"time\":\"\(time)\",\"level\":\"info\",\"message\":\(Self.quoted(self.message))"
        return self.fields.reduce(start) { line, field in
            switch field.1 {
            case .number(let number): line + ",\(Self.quoted(field.0)):\(number)"
            case .text(let text): line + ",\(Self.quoted(field.0)):\(Self.quoted(text))"
            }
        } + "}"
    }

    /// As it is where it is one plain word, else quoted.
    private static func word(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") }
        return isPlain ? text : self.quoted(text)
    }

    /// A JSON string (RFC 8259 §7); everything outside of ASCII's visible part is escaped or kept as UTF-8.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}"..."\u{202E}":
                let digits = String(scalar.value, radix: 16)
                quoted += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: quoted.unicodeScalars.append(scalar)
            }
        }
        return quoted + "\""
    }
}
