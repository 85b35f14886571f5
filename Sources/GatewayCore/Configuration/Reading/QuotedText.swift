/// Text of a configuration as it may stand in a message of one line.
package enum QuotedText {
    /// In quotation marks, at most 60 characters of it, control characters as `\u{…}`.
    package static func quoted(_ text: String) -> String {
        "\"\(Self.shortened(text))\""
    }

    /// The same without the quotation marks.
    package static func shortened(_ text: String) -> String {
        var shown = ""
        for (index, scalar) in text.unicodeScalars.enumerated() {
            guard index < 60 else { return shown + "…" }
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned:
                shown += "\\u{\(String(scalar.value, radix: 16))}"
            default:
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}
