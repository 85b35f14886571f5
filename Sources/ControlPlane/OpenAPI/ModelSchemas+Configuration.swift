import ControlAPI
import GatewayConfiguration
import GatewayCore

/// JSON Schemas of the configuration, generated from the declarations of its keys.
extension ModelSchemas {
    enum ConfigurationUse {
        case whole
        /// A merge patch, where `null` removes a member (RFC 7396).
        case change
    }

    /// A reference to the schema of a list entry with its read-only status.
    mutating func reference(
        _ section: ConfigurationSection, for use: ConfigurationUse = .whole
    ) -> JSONValue {
        guard case .section(let entry) = ConfigurationSchema.entry(of: section) else { return [:] }
        let name = entry.name + (use == .change ? "Patch" : "")
        let status: JSONValue? =
            switch section {
            case .listeners: self.reference(ListenerStatus.self)
            case .upstreams: self.reference(UpstreamStatus.self)
            case .routes: nil
            }
        return self.define(name) { schemas in
            var object = schemas.object(entry, use, schemas.example(name))
            if let status, var properties = object["properties"] {
                properties["status"] = status.with([
                    "readOnly": true, "description": "Ignored in requests.",
                ])
                object["properties"] = properties
            }
            return object
        }
    }

    mutating func listReference(_ section: ConfigurationSection) -> JSONValue {
        let entry = self.reference(section)
        guard case .section(let form) = ConfigurationSchema.entry(of: section) else { return entry }
        let example: JSONValue? = self.example(form.name).map { ["items": [$0]] }
        return self.define(form.name + "List", example: example) { _ in
            ["type": "object", "properties": ["items": ["type": "array", "items": entry]], "required": ["items"]]
        }
    }

    mutating func configurationReference() -> JSONValue {
        // Not `Configuration`, which generated clients define themselves.
        self.define("GatewayConfiguration") {
            $0.object(ConfigurationSchema.whole, .whole, $0.example("GatewayConfiguration"))
        }
    }

    private mutating func object(
        _ section: ConfigurationSchema.Section, _ use: ConfigurationUse, _ example: JSONValue?
    ) -> JSONValue {
        var properties: [JSONValue.Member] = []
        for key in section.keys {
            var schema = self.schema(key.form, use, example?[key.name])
            if use == .change { schema = Self.nullable(schema) }
            let texts = [key.text, schema["description"]?.string, key.defaultText.map { "Default: \($0)." }]
            schema["description"] = .string(texts.compactMap(\.self).joined(separator: " "))
            if use == .whole, let text = key.defaultValue {
                schema["default"] = key.form.json(DocumentNode(.scalar(text), origin: .option("")))
            }
            properties.append(JSONValue.Member(key.name, schema))
        }
        var object: JSONValue = [
            "type": "object", "properties": .object(properties), "additionalProperties": false,
        ]
        let required = section.keys.filter(\.isRequired).map(\.name)
        if use == .whole, !required.isEmpty { object["required"] = .strings(required) }
        return object
    }

    private mutating func schema(
        _ form: ConfigurationSchema.Form, _ use: ConfigurationUse, _ example: JSONValue?
    ) -> JSONValue {
        switch form {
        case .value(let form): return Self.schema(form)
        // A patch replaces a list as a whole.
        case .list(let element): return ["type": "array", "items": self.schema(element, .whole, example?.first)]
        case .map(let content):
            return ["type": "object", "additionalProperties": self.schema(content, use, example?.first)]
        case .either(let forms):
            return ["anyOf": .array(forms.flatMap { self.schema($0, use, example).alternatives })]
        case .section(let section):
            let name = section.name + "Settings" + (use == .change ? "Patch" : "")
            // With alternatives, the example may belong to another one.
            let example = example?.isObject == true ? example : nil
            return self.define(name, example: example) { $0.object(section, use, $0.example(name) ?? example) }
        }
    }

    // MARK: Values

    private static let sizeUnits = "(B|kB|KB|MB|GB|KiB|MiB|GiB|TiB)"
    private static let durationText = "([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?"

    /// - Parameter orNone: whether the word `none` is accepted too.
    private static func schema(_ format: ValueFormat, orNone: Bool = false) -> JSONValue {
        let (none, end) = orNone ? ("none|", ", or none.") : ("", ".")
        let schema: JSONValue
        switch format {
        case .orNone(let inner): return Self.schema(inner, orNone: true)
        case .text(let example, _, let pattern):
            return Self.text(pattern.map { orNone ? "^none$|\($0)" : $0 }, example)
        case .rate(let range):
            return Self.text("^(\(none)[0-9]+/s)$", "\(range.upperBound)/s")
                .with(["description": .string("A rate from \(range.lowerBound)/s to \(range.upperBound)/s\(end)")])
        case .duration(let range):
            let (low, high) = (DurationText(range.lowerBound), DurationText(range.upperBound))
            return Self.text("^(\(none)0|\(Self.durationText))$", "\(high)")
                .with(["minLength": 1, "description": .string("A duration from \(low) to \(high)\(end)")])
        case .boolean: schema = ["type": "boolean"]
        case .choice(let words): schema = ["type": "string", "enum": .strings(words)]
        case .integer(let range):
            schema = [
                "type": "integer", "minimum": .integer(range.lowerBound), "maximum": .integer(range.upperBound),
                "examples": [.integer(range.lowerBound)],
            ]
        case .size(let range):
            schema = [
                "description": .string("A size from \(SizeText(range.lowerBound)) to \(SizeText(range.upperBound))."),
                "anyOf": [
                    ["type": "integer", "minimum": .integer(range.lowerBound), "maximum": .integer(range.upperBound)],
                    Self.text("^[0-9]+\(Self.sizeUnits)?$", "64KiB"),
                ],
            ]
        }
        return orNone ? ["anyOf": .array(schema.alternatives + [["type": "string", "enum": ["none"]]])] : schema
    }

    private static func text(_ pattern: String?, _ example: String) -> JSONValue {
        var schema: JSONValue = ["type": "string"]
        if let pattern { schema["pattern"] = .string(pattern) }
        schema["examples"] = [.string(example)]
        return schema
    }
}
