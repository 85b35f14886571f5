/// Text from elsewhere as it may be printed on a terminal: nothing in it can move the cursor, change colours, turn the
/// direction of writing, or answer in the user's name.
package enum TerminalText {
    /// Control characters become `\u{1B}`; tabs and ends of lines stay.
    package static func safe(_ text: String) -> String {
        var shown = ""
        shown.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if scalar == "\n" || scalar == "\t" || !self.isHarmful(scalar) {
                shown.unicodeScalars.append(scalar)
            } else {
                shown += self.spelled(scalar)
            }
        }
        return shown
    }

    /// In one line, at most `limit` characters of it, ends of lines as spaces.
    package static func line(_ text: String, limit: Int = 200) -> String {
        let words = text.split(whereSeparator: \.isWhitespace)
        let line = self.safe(words.joined(separator: " "))
        return line.count > limit ? line.prefix(limit) + "…" : line
    }

    /// One character of a line that is being written.
    package static func shown(_ character: Character) -> String {
        guard character.unicodeScalars.contains(where: self.isHarmful) else { return String(character) }
        return character.unicodeScalars.map(self.spelled).joined()
    }

    private static func spelled(_ scalar: Unicode.Scalar) -> String {
        "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }

    private static func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // Marks and overrides of the direction of writing, and the separators that some terminals obey.
        case 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: scalar.properties.generalCategory == .control
        }
    }
}
