import WireText

/// Sanitizes untrusted text for a terminal: it cannot move the cursor, change colours or text direction, or make the
/// terminal send input.
package enum TerminalText {
    /// Control characters become escapes like `\u{1B}`; tabs and newlines stay.
    package static func sanitized(_ text: String) -> String {
        var shown = ""
        shown.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            if scalar == "\n" || scalar == "\t" || !self.needsEscaping(scalar) {
                shown.unicodeScalars.append(scalar)
            } else {
                shown += self.escape(scalar)
            }
        }
        return shown
    }

    /// Sanitized text in one line of at most `limit` characters; whitespace is collapsed to single spaces.
    package static func singleLine(_ text: String, limit: Int = 200) -> String {
        let words = text.split(whereSeparator: \.isWhitespace)
        let line = self.sanitized(words.joined(separator: " "))
        return line.count > limit ? line.prefix(limit) + "…" : line
    }

    /// One sanitized character, for a line editor.
    package static func sanitizedCharacter(_ character: Character) -> String {
        guard character.unicodeScalars.contains(where: self.needsEscaping) else { return String(character) }
        return character.unicodeScalars.map(self.escape).joined()
    }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
    }

    private static func needsEscaping(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // Bidirectional controls, and line and paragraph separators.
        case 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: scalar.properties.generalCategory == .control
        }
    }
}

/// Converts between bytes and hexadecimal text.
package enum HexText {
    /// Pairs of hexadecimal digits in either case, optionally separated by spaces and colons.
    /// - Returns: `nil` for anything else.
    package static func bytes(_ text: some StringProtocol) -> [UInt8]? {
        var bytes: [UInt8] = []
        for digits in text.split(whereSeparator: { $0 == " " || $0 == ":" }) {
            guard let more = Hexadecimal.bytes(String(digits)) else { return nil }
            bytes += more
        }
        return bytes
    }

    /// Pairs of digits separated by spaces.
    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { Hexadecimal.text([$0]) }.joined(separator: " ")
    }
}

/// Incremental UTF-8 decoder: an incomplete character at the end waits for its remaining bytes.
package struct UTF8StreamDecoder: Sendable {
    /// Incomplete character, at most three bytes.
    private var rest: [UInt8] = []

    package init() {}

    /// - Returns: the complete characters; invalid UTF-8 becomes U+FFFD.
    package mutating func decode(_ bytes: [UInt8]) -> String {
        var all = self.rest + bytes
        let cut = Self.unfinished(all)
        self.rest = Array(all.suffix(cut))
        all.removeLast(cut)
        return String(decoding: all, as: UTF8.self)
    }

    /// - Returns: the number of bytes at the end that are an incomplete character.
    private static func unfinished(_ bytes: [UInt8]) -> Int {
        for (behind, byte) in bytes.reversed().prefix(4).enumerated() where byte & 0xC0 != 0x80 {
            let length =
                switch byte {
                case 0xC2...0xDF: 2
                case 0xE0...0xEF: 3
                case 0xF0...0xF4: 4
                default: 1
                }
            return behind + 1 < length ? behind + 1 : 0
        }
        return 0
    }
}

/// Formats a usage error of ArgumentParser as one line.
package enum UsageLine {
    private static let begin = "See '"
    private static let standard = "sluice --help"

    /// - Parameters:
    ///   - message: the error message, which may have several lines.
    ///   - whole: the message with the command's usage, ending with `See 'sluice COMMAND --help' for more …`.
    package static func text(message: String, whole: String) -> String {
        let words = message.split(whereSeparator: \.isNewline).map(\.trimmingBlanks).joined(separator: " ")
        let said = TerminalText.sanitized(words.hasSuffix(".") ? String(words.dropLast()) : words)
        return "sluice: \(said.prefix(1).lowercased())\(said.dropFirst()); see '\(self.help(in: whole))'"
    }

    private static func help(in whole: String) -> String {
        let line = whole.split(whereSeparator: \.isNewline).last { $0.drop { $0 == " " }.hasPrefix(Self.begin) }
        let text = line?.drop { $0 == " " }.dropFirst(Self.begin.count).prefix { $0 != "'" }
        return text.map { String($0) } ?? Self.standard
    }
}
