import Yams

/// What the YAML reader says, in our words.
enum YAMLFault {
    static func problem(_ error: YamlError, text: String, file: String) -> ConfigurationProblem {
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let setting = context.map { " (\($0.text) that began at \($0.mark.line):\($0.mark.column))" } ?? ""
            return Self.syntax(
                .file(file, line: mark.line, column: mark.column), found: "a syntax error: " + problem + setting,
                remedy: "look at the indentation, the colons and the quotation marks there")
        case .reader(let problem, let offset, _, _):
            return Self.syntax(
                Self.origin(ofCharacter: offset, in: text, file: file), found: "a syntax error: " + problem)
        case .duplicatedKeysInMapping(let keys, let context):
            return ConfigurationProblem(
                origin: .file(file, line: context.mark.line, column: context.mark.column), keyPath: .root,
                expected: "each key once in a mapping",
                found: keys.map(QuotedText.quoted).joined(separator: ", ") + " twice",
                remedy: "keep one of them")
        case .no, .memory, .writer, .emitter, .representer, .dataCouldNotBeDecoded:
            return Self.syntax(.wholeFile(file), found: "text that could not be read")
        }
    }

    private static func syntax(
        _ origin: ConfigurationOrigin, found: String, remedy: String = ""
    ) -> ConfigurationProblem {
        ConfigurationProblem(origin: origin, keyPath: .root, expected: "YAML", found: found, remedy: remedy)
    }

    private static func origin(ofCharacter offset: Int?, in text: String, file: String) -> ConfigurationOrigin {
        guard let offset else { return .wholeFile(file) }
        var line = 1
        var column = 1
        for character in text.prefix(offset) {
            if character.isNewline {
                line += 1
                column = 1
            } else {
                column += character.unicodeScalars.count
            }
        }
        return .file(file, line: line, column: column)
    }
}
