import Yams

/// Reads the text of a configuration file into a document, within bounds.
///
/// Bounds: 1 MiB of UTF-8, 16 levels, 50 000 values, 16 aliases (an alias may repeat a value with aliases in it, so
/// few of them can stand for very much). A file that is not YAML, or has a key twice in one mapping, gives that one
/// problem.
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
                remedy: "write some of the values out")
        }
        guard let node = try Self.compose(text, file: file) else { return DocumentNode(.mapping([]), origin: whole) }
        var values = 0
        return try Self.convert(node, file: file, depth: 0, values: &values)
    }

    private static func compose(_ text: String, file: String) throws(ConfigurationProblem) -> Node? {
        do {
            // Without a resolver's rules nothing is guessed from the look of a value.
            return try Yams.compose(yaml: text, .basic, .default, .utf8)
        } catch let error as YamlError {
            throw YAMLFault.problem(error, text: text, file: file)
        } catch {
            throw Self.problem(.wholeFile(file), expected: "YAML", found: "text that could not be read")
        }
    }

    private static func convert(
        _ node: Node, file: String, depth: Int, values: inout Int
    ) throws(ConfigurationProblem) -> DocumentNode {
        let origin = Self.origin(node, file: file)
        values += 1
        guard depth < Self.maximumDepth, values <= Self.maximumValues else {
            throw Self.problem(
                origin, expected: "at most \(Self.maximumDepth) levels and \(Self.maximumValues) values", found: "more")
        }
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
            throw Self.problem(origin, expected: "a value", found: "an alias of nothing")
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

    /// How many aliases there may be: every `*` that begins a word. Text in quotation marks and comments is counted
    /// with them.
    private static func aliases(in bytes: [UInt8]) -> Int {
        var count = 0
        var previous = UInt8(ascii: "\n")
        for (index, byte) in bytes.enumerated() {
            if byte == UInt8(ascii: "*"), " \t\r\n[]{},:?-".utf8.contains(previous), index + 1 < bytes.count,
                NameText.isAlphanumeric(bytes[index + 1]) || bytes[index + 1] == 0x5F || bytes[index + 1] == 0x2D
            {
                count += 1
            }
            previous = byte
        }
        return count
    }
}
