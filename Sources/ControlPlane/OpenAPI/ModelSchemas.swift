import ControlAPI

/// JSON Schemas of the wire models, by name.
package struct ModelSchemas {
    package private(set) var all: [String: JSONValue] = [:]
    /// By schema name; a schema without one uses its value in the example of the enclosing schema.
    let examples: [String: JSONValue]

    /// A reference to the schema `name`, which `make` provides at the first use.
    mutating func define(
        _ name: String, example: JSONValue? = nil, _ make: (inout ModelSchemas) -> JSONValue
    ) -> JSONValue {
        if self.all[name] == nil {
            // Defined before its members, as a schema may contain itself.
            self.all[name] = ["type": "object"]
            var schema = make(&self)
            if let example = self.examples[name] ?? example { schema["examples"] = [example] }
            self.all[name] = schema
        } else if let example, self.all[name]?["examples"] == nil {
            self.all[name]?["examples"] = [example]
        }
        return ["$ref": .string("#/components/schemas/\(name)")]
    }

    func example(_ name: String) -> JSONValue? { self.examples[name] }

    package mutating func reference(_ model: any ControlModel.Type) -> JSONValue {
        self.reference(model, example: nil)
    }

    /// - Parameter example: an example value.
    private mutating func reference(_ model: any ControlModel.Type, example: JSONValue?) -> JSONValue {
        self.define("\(model)", example: example) { schemas in
            schemas.object(model, schemas.examples["\(model)"] ?? example)
        }
    }

    private mutating func schema(_ form: MemberForm, _ example: JSONValue?) -> JSONValue {
        switch form {
        case .string: return ["type": "string"]
        case .integer: return ["type": "integer"]
        case .count: return ["type": "integer", "minimum": 0]
        case .number: return ["type": "number"]
        case .boolean: return ["type": "boolean"]
        case .any: return [:]
        case .array(let element): return ["type": "array", "items": self.schema(element, example?.first)]
        case .map(let content):
            return ["type": "object", "additionalProperties": self.schema(content, example?.first)]
        case .model(let model): return self.reference(model, example: example)
        }
    }

    private mutating func object(_ model: any ControlModel.Type, _ example: JSONValue?) -> JSONValue {
        // Requests: unknown members are refused, and `null` counts as missing.
        let isStrict = model is any StrictDecodable.Type
        let members = model.members
        let properties = members.map { member in
            let schema = self.schema(member.form, example?[member.name]).with(member.rules.schema)
            return JSONValue.Member(member.name, isStrict && !member.isRequired ? Self.nullable(schema) : schema)
        }
        var object: JSONValue = ["type": "object", "properties": .object(properties)]
        let required = members.filter(\.isRequired).map(\.name)
        if !required.isEmpty { object["required"] = .strings(required) }
        if isStrict { object["additionalProperties"] = false }
        return object
    }

    static func nullable(_ schema: JSONValue) -> JSONValue {
        guard case .string(let type)? = schema["type"], schema["enum"] == nil else {
            return ["anyOf": [schema, ["type": "null"]]]
        }
        var schema = schema
        schema["type"] = [.string(type), "null"]
        return schema
    }
}

extension MemberRules {
    /// The members of the schema that the rules provide.
    fileprivate var schema: JSONValue {
        var schema: JSONValue = [:]
        if !self.words.isEmpty { schema["enum"] = .strings(self.words) }
        schema["minimum"] = self.minimum.map { .integer($0) }
        schema["maximum"] = self.maximum.map { .integer($0) }
        schema["maxLength"] = self.byteLimit.map { .integer($0) }
        schema["maxProperties"] = self.countLimit.map { .integer($0) }
        switch self.format {
        case .time: schema["format"] = "date-time"
        case .uri: schema["format"] = "uri"
        case .base64: schema["contentEncoding"] = "base64"
        case nil: break
        }
        let sentences = [self.description, self.isMilliseconds ? "In milliseconds." : ""].filter { !$0.isEmpty }
        if !sentences.isEmpty { schema["description"] = .string(sentences.joined(separator: " ")) }
        return schema
    }
}
