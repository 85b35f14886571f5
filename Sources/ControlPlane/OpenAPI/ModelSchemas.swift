import ControlAPI

/// JSON Schemas of the wire models, each once, under its name.
package struct ModelSchemas {
    package private(set) var all: [String: DocumentValue] = [:]
    private let notes: [String: DocumentValue]

    /// - Parameter notes: what a member's type does not say, by `Model.member`.
    package init(notes: [String: DocumentValue]) {
        self.notes = notes
    }

    /// A reference to the schema of `type`, which is added if it is not there yet.
    package mutating func reference(_ type: any Decodable.Type) throws -> DocumentValue {
        let isStrict = (type as? any StrictlyRead.Type) != nil
        return self.schema(try ModelShape.of(type), isStrict: isStrict)
    }

    /// - Parameter isStrict: of a request: other members are refused, and `null` counts as missing.
    private mutating func schema(_ shape: ModelShape, isStrict: Bool) -> DocumentValue {
        switch shape {
        case .string: return ["type": "string"]
        case .integer: return ["type": "integer"]
        case .count: return ["type": "integer", "minimum": 0]
        case .number: return ["type": "number"]
        case .boolean: return ["type": "boolean"]
        case .any: return [:]
        case .array(let element): return ["type": "array", "items": self.schema(element, isStrict: isStrict)]
        case .map(let content):
            return ["type": "object", "additionalProperties": self.schema(content, isStrict: isStrict)]
        case .model(let name, let members):
            if self.all[name] == nil {
                // Before its members, so that a model that holds itself comes to an end.
                self.all[name] = ["type": "object"]
                self.all[name] = self.object(name, members, isStrict: isStrict)
            }
            return ["$ref": .string("#/components/schemas/\(name)")]
        }
    }

    private mutating func object(_ name: String, _ members: [ModelShape.Member], isStrict: Bool) -> DocumentValue {
        var properties: [DocumentValue.Member] = []
        for member in members {
            var schema = self.schema(member.shape, isStrict: isStrict)
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

    private static func orNull(_ schema: DocumentValue) -> DocumentValue {
        guard case .string(let type)? = schema["type"], schema["enum"] == nil else {
            return ["anyOf": [schema, ["type": "null"]]]
        }
        var schema = schema
        schema["type"] = [.string(type), "null"]
        return schema
    }
}
