import ControlAPI

/// JSON Schemas of the wire models, each once, under its name.
package struct ModelSchemas {
    package private(set) var all: [String: DocumentValue] = [:]
    private let notes: [String: DocumentValue]

    private let examples: [String: DocumentValue]

    /// - Parameters:
    ///   - notes: what a member's type does not say, by `Model.member`.
    ///   - examples: values by the names of schemas; of a schema that has none, one is taken out of what holds it.
    package init(notes: [String: DocumentValue], examples: [String: DocumentValue] = [:]) {
        self.notes = notes
        self.examples = examples
    }

    /// A reference to the schema `name`, which `make` makes if it is not there yet.
    mutating func define(
        _ name: String, example: DocumentValue? = nil, _ make: (inout ModelSchemas) -> DocumentValue
    ) -> DocumentValue {
        if self.all[name] == nil {
            // Before its members, so that a schema that holds itself comes to an end.
            self.all[name] = ["type": "object"]
            var schema = make(&self)
            if let example = self.examples[name] ?? example { schema["examples"] = [example] }
            self.all[name] = schema
        } else if let example, self.all[name]?["examples"] == nil {
            self.all[name]?["examples"] = [example]
        }
        return ["$ref": .string("#/components/schemas/\(name)")]
    }

    func example(_ name: String) -> DocumentValue? { self.examples[name] }

    /// A reference to the schema of `type`, which is added if it is not there yet.
    package mutating func reference(_ type: any Decodable.Type) throws -> DocumentValue {
        let isStrict = (type as? any StrictlyRead.Type) != nil
        return self.schema(try ModelShape.of(type), isStrict: isStrict, nil)
    }

    /// - Parameters:
    ///   - isStrict: of a request: other members are refused, and `null` counts as missing.
    ///   - example: a value of it.
    private mutating func schema(_ shape: ModelShape, isStrict: Bool, _ example: DocumentValue?) -> DocumentValue {
        switch shape {
        case .string: return ["type": "string"]
        case .integer: return ["type": "integer"]
        case .count: return ["type": "integer", "minimum": 0]
        case .number: return ["type": "number"]
        case .boolean: return ["type": "boolean"]
        case .any: return [:]
        case .array(let element):
            return ["type": "array", "items": self.schema(element, isStrict: isStrict, example?.first)]
        case .map(let content):
            return [
                "type": "object", "additionalProperties": self.schema(content, isStrict: isStrict, example?.first),
            ]
        case .model(let name, let members):
            return self.define(name, example: example) { schemas in
                schemas.object(name, members, isStrict: isStrict, schemas.examples[name] ?? example)
            }
        }
    }

    private mutating func object(
        _ name: String, _ members: [ModelShape.Member], isStrict: Bool, _ example: DocumentValue?
    ) -> DocumentValue {
        var properties: [DocumentValue.Member] = []
        for member in members {
            var schema = self.schema(member.shape, isStrict: isStrict, example?[member.name])
            if let note = self.notes["\(name).\(member.name)"] { schema = schema.with(note) }
            if isStrict, !member.isRequired { schema = Self.orNull(schema) }
            properties.append(DocumentValue.Member(member.name, schema))
        }
        var object: DocumentValue = ["type": "object", "properties": .object(properties)]
        let required = members.filter(\.isRequired).map(\.name)
        if !required.isEmpty { object["required"] = .strings(required) }
        if isStrict { object["additionalProperties"] = false }
        return object
    }

    static func orNull(_ schema: DocumentValue) -> DocumentValue {
        guard case .string(let type)? = schema["type"], schema["enum"] == nil else {
            return ["anyOf": [schema, ["type": "null"]]]
        }
        var schema = schema
        schema["type"] = [.string(type), "null"]
        return schema
    }
}
