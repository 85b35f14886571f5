import Yams

/// Parses the text of a configuration file into a document, within limits.
///
/// Limits: 1 MiB of UTF-8, 16 levels, 50 000 values, 16 aliases (aliases may be nested, so a few of them can expand to
/// very much). Text that is not YAML, or has a duplicate key in a mapping, yields this one problem only.
enum YAMLDocument {
    static let maximumSize = 1024 * 1024
    private static let maximumDepth = 16
    private static let maximumValues = 50_000
    private static let maximumAliases = 16

    static func read(_ bytes: [UInt8], file: String) throws(ConfigurationProblem) -> DocumentNode {
        let whole = ConfigurationOrigin.wholeFile(file)
        guard bytes.count <= Self.maximumSize else {
            throw Self.problem(whole, expected: "at most 1 MiB of configuration", found: "more")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Self.problem(whole, expected: "text in UTF-8", found: "other bytes", remedy: "save the file as UTF-8")
        }
        guard Self.aliases(in: bytes) <= Self.maximumAliases else {
            throw Self.problem(
                whole, expected: "at most \(Self.maximumAliases) aliases (*name)", found: "more",
                remedy: "write some values out in full")
        }
        guard let node = try Self.compose(text, file: file) else { return DocumentNode(.mapping([]), origin: whole) }
        var values = 0
        return try Self.convert(node, file: file, depth: 0, values: &values)
    }

    private static func compose(_ text: String, file: String) throws(ConfigurationProblem) -> Node? {
        // The parser would count a byte order mark as a column of the first line.
        let text = text.unicodeScalars.first == "\u{FEFF}" ? String(text.unicodeScalars.dropFirst()) : text
        do {
            // The basic resolver keeps every scalar as text.
            return try Yams.compose(yaml: text, .basic, .default, .utf8)
        } catch YamlError.parser(_, let problem, let mark, _) where problem.hasPrefix("Maximum nesting level") {
            // The parser has a limit of its own, and a text about it that names one of its functions.
            throw Self.tooLarge(.file(file, line: mark.line, column: mark.column))
        } catch let error as YamlError {
            throw YAMLErrorMapping.problem(error, text: text, file: file)
        } catch {
            throw Self.problem(.wholeFile(file), expected: "YAML", found: "text that could not be read")
        }
    }

    private static func convert(
        _ node: Node, file: String, depth: Int, values: inout Int
    ) throws(ConfigurationProblem) -> DocumentNode {
        let origin = Self.origin(node, file: file)
        values += 1
        guard depth < Self.maximumDepth, values <= Self.maximumValues else { throw Self.tooLarge(origin) }
        switch node {
        case .scalar(let scalar):
            return DocumentNode(Self.isEmpty(scalar) ? .empty : .scalar(scalar.string), origin: origin)
        case .sequence(let sequence):
            var nodes: [DocumentNode] = []
            for element in sequence {
                nodes.append(try Self.convert(element, file: file, depth: depth + 1, values: &values))
            }
            return DocumentNode(.sequence(nodes), origin: origin)
        case .mapping(let mapping):
            var entries: [DocumentNode.Entry] = []
            for (key, value) in mapping {
                let keyOrigin = Self.origin(key, file: file)
                guard case .scalar(let name) = key else {
                    throw Self.problem(keyOrigin, expected: "a word as the key", found: "a list or a mapping")
                }
                let converted = try Self.convert(value, file: file, depth: depth + 1, values: &values)
                entries.append(DocumentNode.Entry(key: name.string, origin: keyOrigin, value: converted))
            }
            return DocumentNode(.mapping(entries), origin: origin)
        case .alias:
            throw Self.problem(origin, expected: "a value", found: "an alias of an unknown anchor")
        }
    }

    private static func isEmpty(_ scalar: Node.Scalar) -> Bool {
        scalar.style == .plain && ["", "~", "null"].contains(scalar.string)
    }

    private static func origin(_ node: Node, file: String) -> ConfigurationOrigin {
        node.mark.map { .file(file, line: $0.line, column: $0.column) } ?? .wholeFile(file)
    }

    private static func problem(
        _ origin: ConfigurationOrigin, expected: String, found: String, remedy: String = ""
    ) -> ConfigurationProblem {
        ConfigurationProblem(origin: origin, keyPath: .root, expected: expected, found: found, remedy: remedy)
    }

    private static func tooLarge(_ origin: ConfigurationOrigin) -> ConfigurationProblem {
        Self.problem(
            origin, expected: "at most \(Self.maximumDepth) levels and \(Self.maximumValues) values", found: "more")
    }

    /// An upper bound of the number of aliases: each `*` that begins a word, in quoted text and comments as well. The
    /// line ends of Unicode count as line ends, like every character beyond ASCII.
    private static func aliases(in bytes: [UInt8]) -> Int {
        var count = 0
        var previous = UInt8(ascii: "\n")
        for (index, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: "*"), previous >= 0x80 || " \t\r\n[]{},:?-".utf8.contains(previous),
                index + 1 < bytes.count,
                NameText.isAlphanumeric(bytes[index + 1]) || bytes[index + 1] == 0x5F || bytes[index + 1] == 0x2D
            {
                count += 1
            }
            previous = byte
        }
        return count
    }
}

/// Maps errors of the YAML parser to problems.
private enum YAMLErrorMapping {
    static func problem(_ error: YamlError, text: String, file: String) -> ConfigurationProblem {
        switch error {
        case .scanner(let context, let problem, let mark, _), .parser(let context, let problem, let mark, _),
            .composer(let context, let problem, let mark, _):
            let suffix = context.map { " (\($0.text) that began at \($0.mark.line):\($0.mark.column))" } ?? ""
            return Self.syntax(
                .file(file, line: mark.line, column: mark.column), found: "a syntax error: " + problem + suffix,
                remedy: "check the indentation, colons and quotation marks there")
        case .reader(let problem, let offset, _, _):
            return Self.syntax(
                Self.origin(ofCharacter: offset, in: text, file: file), found: "a syntax error: " + problem)
        case .duplicatedKeysInMapping(let keys, let context):
            // The parser names keys that are lists or mappings so.
            guard !keys.contains("<uncovertable>") else {
                return ConfigurationProblem(
                    origin: .file(file, line: context.mark.line, column: context.mark.column), keyPath: .root,
                    expected: "a word as the key", found: "a list or a mapping")
            }
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

/// A value of a configuration as written in a file or on the command line, before it is interpreted.
package struct DocumentNode: Sendable {
    package indirect enum Content: Sendable {
        /// A key without a value, `null` or `~`.
        case empty
        case scalar(String)
        case sequence([DocumentNode])
        case mapping([Entry])
    }

    package struct Entry: Sendable {
        package let key: String
        /// Origin of the key.
        package let origin: ConfigurationOrigin
        package let value: DocumentNode

        package init(key: String, origin: ConfigurationOrigin, value: DocumentNode) {
            self.key = key
            self.origin = origin
            self.value = value
        }
    }

    package let content: Content
    package let origin: ConfigurationOrigin

    package init(_ content: Content, origin: ConfigurationOrigin) {
        self.content = content
        self.origin = origin
    }

    /// Description of the value, to be read after "found".
    package var summary: String {
        switch self.content {
        case .empty: "nothing"
        case .scalar(let text): QuotedText.quoted(text)
        case .sequence(let nodes): nodes.isEmpty ? "an empty list" : "a list"
        case .mapping: "a mapping"
        }
    }

    /// Origin of the value at `path`; if there is none, of its nearest ancestor.
    func origin(at path: ConfigurationKeyPath) -> ConfigurationOrigin {
        var node = self
        for step in path.steps {
            guard let next = node.child(step) else { break }
            node = next
        }
        return node.origin
    }

    /// Description of the value at `path`, to be read after "found".
    package func summary(at path: ConfigurationKeyPath) -> String {
        self.node(at: path)?.summary ?? "nothing"
    }

    /// The value at `path`, if there is one.
    func node(at path: ConfigurationKeyPath) -> DocumentNode? {
        var node = self
        for step in path.steps {
            guard let next = node.child(step) else { return nil }
            node = next
        }
        return node
    }

    /// A single value counts as a list of one.
    private func child(_ step: ConfigurationKeyPath.Step) -> DocumentNode? {
        switch (step, self.content) {
        case (.key(let name), .mapping(let entries)): entries.first { $0.key == name }?.value
        case (.index(let index), .sequence(let nodes)) where nodes.indices.contains(index): nodes[index]
        case (.index(0), .scalar): self
        default: nil
        }
    }
}
