import ControlAPI

/// JSON Schemas of the wire models, by name.
package struct ModelSchemas {
    package private(set) var all: [String: OrderedJSON] = [:]
    private let descriptions: [String: OrderedJSON]
    private let examples: [String: OrderedJSON]

    /// - Parameters:
    ///   - descriptions: schema members that a member's type does not provide, by `Model.member`.
    ///   - examples: by schema name; a schema without one uses its value in the example of the enclosing schema.
    package init(descriptions: [String: OrderedJSON], examples: [String: OrderedJSON] = [:]) {
        self.descriptions = descriptions
        self.examples = examples
    }

    /// A reference to the schema `name`, which `make` provides at the first use.
    mutating func define(
        _ name: String, example: OrderedJSON? = nil, _ make: (inout ModelSchemas) -> OrderedJSON
    ) -> OrderedJSON {
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

    func example(_ name: String) -> OrderedJSON? { self.examples[name] }

    package mutating func reference(_ type: any Decodable.Type) throws -> OrderedJSON {
        let isStrict = (type as? any StrictDecodable.Type) != nil
        return self.schema(try ModelShape.of(type), isStrict: isStrict, nil)
    }

    /// - Parameters:
    ///   - isStrict: for requests: unknown members are refused, and `null` counts as missing.
    ///   - example: an example value.
    private mutating func schema(_ shape: ModelShape, isStrict: Bool, _ example: OrderedJSON?) -> OrderedJSON {
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
        _ name: String, _ members: [ModelShape.Member], isStrict: Bool, _ example: OrderedJSON?
    ) -> OrderedJSON {
        var properties: [OrderedJSON.Member] = []
        for member in members {
            var schema = self.schema(member.shape, isStrict: isStrict, example?[member.name])
            if let description = self.descriptions["\(name).\(member.name)"] { schema = schema.with(description) }
            if isStrict, !member.isRequired { schema = Self.nullable(schema) }
            properties.append(OrderedJSON.Member(member.name, schema))
        }
        var object: OrderedJSON = ["type": "object", "properties": .object(properties)]
        let required = members.filter(\.isRequired).map(\.name)
        if !required.isEmpty { object["required"] = .strings(required) }
        if isStrict { object["additionalProperties"] = false }
        return object
    }

    static func nullable(_ schema: OrderedJSON) -> OrderedJSON {
        guard case .string(let type)? = schema["type"], schema["enum"] == nil else {
            return ["anyOf": [schema, ["type": "null"]]]
        }
        var schema = schema
        schema["type"] = [.string(type), "null"]
        return schema
    }
}

/// The JSON structure of a wire model, derived from its `Decodable` conformance.
package indirect enum ModelShape: Sendable, Equatable {
    case string
    case integer
    /// An unsigned integer.
    case count
    case number
    case boolean
    /// Any JSON value.
    case any
    case array(ModelShape)
    /// An object with arbitrary names.
    case map(ModelShape)
    case model(name: String, members: [Member])

    package struct Member: Sendable, Equatable {
        package let name: String
        package let shape: ModelShape
        package let isRequired: Bool
    }

    /// - Throws: for a type that cannot be decoded from default values.
    package static func of<Model: Decodable>(_ type: Model.Type) throws -> ModelShape {
        try ShapeSample.of(type).shape
    }
}

/// A decoder that provides a default value for every member and one element for every list, and records what is decoded.
private struct ShapeDecoder: Decoder {
    static let anyName = "*"

    let recorder: ShapeRecorder
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Members<Key>(recorder: self.recorder))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer { Elements(recorder: self.recorder) }

    func singleValueContainer() -> any SingleValueDecodingContainer { Scalar(recorder: self.recorder) }

    /// Nested containers, which no wire model opens.
    struct Unsupported: Error {}

    struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let recorder: ShapeRecorder
        let codingPath: [any CodingKey] = []

        /// Only dictionaries use these; models have no key of this name.
        var allKeys: [Key] { [Key(stringValue: ShapeDecoder.anyName)].compactMap { $0 } }

        func contains(_ key: Key) -> Bool {
            self.recorder.checkedPresence(key)
            return true
        }

        func decodeNil(forKey key: Key) -> Bool { false }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            try self.recorder.member(type, key)
        }

        func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type, forKey key: Key) throws
            -> KeyedDecodingContainer<Inner>
        {
            throw Unsupported()
        }

        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw Unsupported() }
        func superDecoder() throws -> any Decoder { throw Unsupported() }
        func superDecoder(forKey key: Key) throws -> any Decoder { throw Unsupported() }
    }

    struct Elements: UnkeyedDecodingContainer {
        let recorder: ShapeRecorder
        let codingPath: [any CodingKey] = []
        let count: Int? = 1
        private(set) var currentIndex = 0

        init(recorder: ShapeRecorder) {
            self.recorder = recorder
        }

        var isAtEnd: Bool { self.currentIndex > 0 }

        mutating func decodeNil() -> Bool { false }

        mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            try self.next(type)
        }

        mutating func next<Value: Decodable>(_ type: Value.Type) throws -> Value {
            self.currentIndex += 1
            return try self.recorder.element(type)
        }

        mutating func nestedContainer<Inner: CodingKey>(keyedBy type: Inner.Type) throws
            -> KeyedDecodingContainer<Inner>
        {
            throw Unsupported()
        }

        mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Unsupported() }
        mutating func superDecoder() throws -> any Decoder { throw Unsupported() }
    }

    struct Scalar: SingleValueDecodingContainer {
        let recorder: ShapeRecorder
        let codingPath: [any CodingKey] = []

        func decodeNil() -> Bool { false }

        func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try self.recorder.scalar(type) }
    }
}

/// Records what a type decodes.
private final class ShapeRecorder {
    private let name: String
    private var members: [ModelShape.Member] = []
    private var element: ModelShape?
    private var content: ModelShape?
    private var scalar: ModelShape?
    /// Members whose presence was checked before they were decoded.
    private var optional: Set<String> = []

    init(name: String) {
        self.name = name
    }

    func checkedPresence(_ key: any CodingKey) { self.optional.insert(key.stringValue) }

    func member<Value: Decodable>(_ type: Value.Type, _ key: any CodingKey) throws -> Value {
        let sample = try ShapeSample.of(type)
        if key.stringValue == ShapeDecoder.anyName {
            self.content = sample.shape
        } else {
            let name = key.stringValue
            self.members.append(
                ModelShape.Member(name: name, shape: sample.shape, isRequired: !self.optional.contains(name)))
        }
        return sample.value
    }

    func element<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let sample = try ShapeSample.of(type)
        self.element = sample.shape
        return sample.value
    }

    func scalar<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let sample = try ShapeSample.of(type)
        self.scalar = sample.shape
        return sample.value
    }

    func shape() throws -> ModelShape {
        if let scalar = self.scalar { return scalar }
        if let element = self.element { return .array(element) }
        if let content = self.content { return .map(content) }
        return .model(name: self.name, members: self.members)
    }
}

/// A value of a type, and the structure of its JSON.
private struct ShapeSample<Value> {
    let shape: ModelShape
    let value: Value

    static func of(_ type: Value.Type) throws -> ShapeSample where Value: Decodable {
        for (shape, value) in Self.scalars {
            if let value = value as? Value { return ShapeSample(shape: shape, value: value) }
        }
        let recorder = ShapeRecorder(name: "\(type)")
        let value = try Value(from: ShapeDecoder(recorder: recorder))
        return ShapeSample(shape: try recorder.shape(), value: value)
    }

    private static var scalars: [(ModelShape, any Sendable)] {
        [
            (.string, ""), (.integer, 0), (.count, UInt64(0)), (.count, UInt32(0)), (.number, 0.0), (.boolean, false),
            (.integer, Int64(0)), (.any, JSONValue.null),
        ]
    }
}
