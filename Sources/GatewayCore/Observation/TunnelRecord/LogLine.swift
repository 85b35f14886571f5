/// One line of the log, as text (`time level message key=value …`) or as a JSON object. Whatever the values hold, it stays one line and one
/// object: nobody outside can forge a line, a field, or a terminal's control sequence.
package struct LogLine: Sendable {
    /// A longer value is cut and marked with `…`. Characters, not bytes.
    package static let valueLimit = 1024

    /// Constant text: what varies is a field.
    package let message: String
    package private(set) var fields: [(name: String, value: LogValue)] = []

    package init(_ message: String) {
        self.message = message
    }

    /// Adds a field; nothing where `value` is `nil`. Names are of ours: letters, digits, `_`.
    package mutating func add(_ name: String, _ value: String?) {
        if let value { self.fields.append((name, .text(value))) }
    }

    package mutating func add(_ name: String, _ value: UInt64) {
        self.fields.append((name, .count(value)))
    }

    package mutating func add(_ name: String, _ value: Duration) {
        self.fields.append((name, .duration(value)))
    }

    /// The line without its end.
    /// - Parameter time: as it is to stand there, from `UTCTime`.
    package func rendered(_ format: LogSettings.Format, time: String, level: LogSettings.Level) -> String {
        switch format {
        case .text:
            self.fields.reduce(into: "\(time) \(level.rawValue) \(self.message)") { line, field in
                line += " \(field.name)=\(Self.text(field.value))"
            }
        case .json:
            self.fields.reduce(
                into: "{\"time\":\"\(time)\",\"level\":\"\(level.rawValue)\",\"message\":\(Self.quoted(self.message))"
            ) { line, field in
                line += ",\(Self.quoted(field.name)):\(Self.json(field.value))"
            } + "}"
        }
    }

    private static func text(_ value: LogValue) -> String {
        switch value {
        case .text(let text): Self.isPlain(text) ? text : Self.quoted(text)
        case .count, .duration: Self.json(value)
        }
    }

    private static func json(_ value: LogValue) -> String {
        switch value {
        case .text(let text): Self.quoted(text)
        case .count(let count): String(count)
        case .duration(let duration): Self.seconds(duration)
        }
    }

    private static func seconds(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        let milliseconds = abs(attoseconds / 1_000_000_000_000_000)
        let padding = milliseconds < 10 ? "00" : milliseconds < 100 ? "0" : ""
        let sign = seconds == 0 && attoseconds < 0 && milliseconds > 0 ? "-" : ""
        return "\(sign)\(seconds).\(padding)\(milliseconds)"
    }

    /// What needs no quotes among `key=value` pairs.
    private static func isPlain(_ text: String) -> Bool {
        (1...Self.valueLimit).contains(text.utf8.count)
            && text.utf8.allSatisfy { NameText.isAlphanumeric($0) || "-._:/@+[]()%,~*".utf8.contains($0) }
    }

    /// A JSON string (RFC 8259 §7).
    private static func quoted(_ text: String) -> String {
        var quoted = "\""
        var count = 0
        for scalar in text.unicodeScalars {
            guard count < Self.valueLimit else {
                quoted += "…"
                break
            }
            count += 1
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
        let digits = String(scalar.value, radix: 16, uppercase: true)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
}
