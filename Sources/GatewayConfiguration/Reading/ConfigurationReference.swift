/// The reference of all keys in Markdown: the second half of the article on configuration.
package enum ConfigurationReference {
    /// An entry for each key, under a heading for each section at the top.
    package static var markdown: String {
        var text = ""
        var heading = ""
        for (name, key) in ConfigurationSchema.keys {
            let section = name.contains(".") ? "`\(name.prefix { $0 != "[" && $0 != "." })`" : "the gateway"
            if section != heading {
                heading = section
                text += "\n## Keys of \(section)\n"
            }
            text += "\n" + Self.entry(name, key)
        }
        return text
    }

    private static func entry(_ name: String, _ key: ConfigurationSchema.Key) -> String {
        let lines = [
            "- Syntax: \(key.form.words)",
            "- Default: \(key.isRequired ? "none; required" : key.defaultText ?? "none")",
            key.needsRestart ? "- Change: takes effect at the next start" : nil,
            "- Example: `\(key.name): \(key.example)`",
        ]
        return "### `\(name)`\n\n\(key.text)\n\n" + lines.compactMap { $0.map { $0 + "\n" } }.joined()
    }
}

extension ConfigurationSchema.Key {
    /// A value in YAML: a declared one, or one that the form or the default gives.
    package var example: String { self.explicitExample ?? self.form.example ?? self.defaultValue ?? "" }

    /// The default as text of a value, if it is a single one.
    package var defaultValue: String? {
        guard let text = self.defaultText, text.hasPrefix("`"), text.hasSuffix("`"), !text.hasPrefix("`[") else {
            return nil
        }
        let value = text.dropFirst().dropLast()
        return value.contains("`") ? nil : String(value)
    }
}

extension ConfigurationSchema.Form {
    /// The syntax in words, in Markdown.
    var words: String {
        switch self {
        case .value(let format): format.words
        case .list(.section): "a list of mappings"
        case .list(let element): "a list, each entry \(element.words)"
        case .map(let content): "a mapping of names and values: \(content.words)"
        case .section: "a mapping"
        case .either(let forms): forms.map(\.words).joined(separator: "; or ")
        }
    }

    /// `nil` if the default is the best example.
    fileprivate var example: String? {
        if case .value(let format) = self { format.example } else { nil }
    }
}

extension ValueFormat {
    /// The syntax with its range in words, in Markdown.
    package var words: String {
        switch self {
        case .text(_, let words, _): words
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .size(let range): "a size from `\(SizeText(range.lowerBound))` to `\(SizeText(range.upperBound))`"
        case .rate(let range): "a rate from `\(range.lowerBound)/s` to `\(range.upperBound)/s`"
        case .duration(let range):
            "a duration from `\(DurationText(range.lowerBound))` to `\(DurationText(range.upperBound))`"
        case .boolean: "`true` or `false`"
        case .choice(let words):
            words.dropLast().map { "`\($0)`" }.joined(separator: ", ") + " or `\(words.last ?? "")`"
        case .orNone(let format): "\(format.words), or `none`"
        }
    }

    fileprivate var example: String? {
        switch self {
        case .text(let example, _, _): example
        case .choice(let words): words.last
        case .orNone(let format): format.example
        case .integer, .size, .rate, .duration, .boolean: nil
        }
    }
}
