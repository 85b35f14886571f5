/// What is wrong with a command line, in one line.
package enum UsageLine {
    private static let begin = "See '"
    private static let standard = "sluice --help"

    /// - Parameters:
    ///   - message: what is wrong, in one line or several.
    ///   - whole: the same with how to use the command, and at its end `See 'sluice COMMAND --help' for more …`.
    package static func text(message: String, whole: String) -> String {
        let lines = message.split(whereSeparator: \.isNewline).map { line in
            String(line.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
        }
        let words = lines.joined(separator: " ")
        let said = words.hasSuffix(".") ? String(words.dropLast()) : words
        return "sluice: \(said.prefix(1).lowercased())\(said.dropFirst()); see '\(self.help(in: whole))'"
    }

    private static func help(in whole: String) -> String {
        let line = whole.split(whereSeparator: \.isNewline).last { $0.drop { $0 == " " }.hasPrefix(Self.begin) }
        let text = line?.drop { $0 == " " }.dropFirst(Self.begin.count).prefix { $0 != "'" }
        return text.map { String($0) } ?? Self.standard
    }
}
