/// One line of the log: a constant message with named values. What peers say in them cannot forge a line or end a
/// string.
package struct LogLine: Sendable {
    package enum Value: Sendable {
        case text(String)
        case number(UInt64)
    }

    /// A longer value is cut and marked with `…`; in characters.
    package static let valueLimit = 1024

    let level: LogSettings.Level
    private let message: String
    private let fields: [(String, Value)]

    package init(_ message: String, _ fields: [(String, Value)], level: LogSettings.Level = .info) {
        self.level = level
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
        self.fields.reduce("\(time) \(self.level.rawValue) \(self.message)") { line, field in
            switch field.1 {
            case .number(let number): line + " \(field.0)=\(number)"
            case .text(let text): line + " \(field.0)=\(Self.word(text))"
            }
        }
    }

    private func json(_ time: String) -> String {
        let start =
            "{\"time\":\"\(time)\",\"level\":\"\(self.level.rawValue)\",\"message\":\(Self.quoted(self.message))"
        return self.fields.reduce(start) { line, field in
            switch field.1 {
            case .number(let number): line + ",\(Self.quoted(field.0)):\(number)"
            case .text(let text): line + ",\(Self.quoted(field.0)):\(Self.quoted(text))"
            }
        } + "}"
    }

    /// As it is where it is one plain word that cannot be taken for `key=value`, else quoted.
    private static func word(_ text: String) -> String {
        let isPlain =
            (1...Self.valueLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"\\=".utf8.contains($0) }
        return isPlain ? text : self.quoted(text)
    }

    /// A JSON string (RFC 8259 §7); everything outside of ASCII's visible part is escaped or kept as UTF-8.
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        for (index, scalar) in text.unicodeScalars.enumerated() {
            guard index < Self.valueLimit else {
                quoted += "…"
                break
            }
            switch scalar {
            case "\"": quoted += "\\\""
            case "\\": quoted += "\\\\"
            case "\n": quoted += "\\n"
            case "\r": quoted += "\\r"
            case "\t": quoted += "\\t"
            default:
                if Self.isHarmless(scalar) {
                    quoted.unicodeScalars.append(scalar)
                } else {
                    quoted += Self.escape(scalar)
                }
            }
        }
        return quoted + "\""
    }

    /// No control character (C0, DEL, C1), no line end of Unicode, nothing that turns the direction of writing.
    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00...0x1F, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF: false
        default: true
        }
    }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
