import ControlAPI

/// JSON Schemas of the wire models, each once, under its name.
package struct ModelSchemas {
    package private(set) var all: [String: OrderedJSON] = [:]
    private let notes: [String: OrderedJSON]

    private let examples: [String: OrderedJSON]

    /// - Parameters:
    ///   - notes: what a member's type does not say, by `Model.member`.
    ///   - examples: values by the names of schemas; of a schema that has none, one is taken out of what holds it.
    package init(notes: [String: OrderedJSON], examples: [String: OrderedJSON] = [:]) {
        self.notes = notes
        self.examples = examples
    }

    /// A reference to the schema `name`, which `make` makes if it is not there yet.
    mutating func define(
        _ name: String, example: OrderedJSON? = nil, _ make: (inout ModelSchemas) -> OrderedJSON
    ) -> OrderedJSON {
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

    func example(_ name: String) -> OrderedJSON? { self.examples[name] }

    /// A reference to the schema of `type`, which is added if it is not there yet.
    package mutating func reference(_ type: any Decodable.Type) throws -> OrderedJSON {
        let isStrict = (type as? any StrictlyRead.Type) != nil
        return self.schema(try ModelShape.of(type), isStrict: isStrict, nil)
    }

    /// - Parameters:
    ///   - isStrict: of a request: other members are refused, and `null` counts as missing.
    ///   - example: a value of it.
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
            if let note = self.notes["\(name).\(member.name)"] { schema = schema.with(note) }
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

/// What a wire model looks like as JSON, learnt from the model itself.
package indirect enum ModelShape: Sendable, Equatable {
    case string
    case integer
    /// A whole number from 0 up.
    case count
    case number
    case boolean
    /// Any JSON value.
    case any
    case array(ModelShape)
    /// Names that are free, each with such a value.
    case map(ModelShape)
    case model(name: String, members: [Member])

    package struct Member: Sendable, Equatable {
        package let name: String
        package let shape: ModelShape
        package let isRequired: Bool
    }

    /// - Throws: for a type that cannot be decoded from values without content.
    package static func of<Model: Decodable>(_ type: Model.Type) throws -> ModelShape {
        try ShapeSample.of(type).shape
    }
}

/// A decoder without content: every member is there, every list has one element.
struct ShapeDecoder: Decoder {
    static let freeName = "*"

    let recorder: ShapeRecorder
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Members<Key>(recorder: self.recorder))
    }

    func unkeyedContainer() -> any UnkeyedDecodingContainer { Elements(recorder: self.recorder) }

    func singleValueContainer() -> any SingleValueDecodingContainer { Scalar(recorder: self.recorder) }

    /// Models have no containers that they open by hand.
    struct Unsupported: Error {}
}

extension ShapeDecoder {
    struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let recorder: ShapeRecorder
        let codingPath: [any CodingKey] = []

        /// Only dictionaries ask for these; the keys of models are none of this name.
        var allKeys: [Key] { [Key(stringValue: ShapeDecoder.freeName)].compactMap { $0 } }

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

/// The requirements for single types, which are all met alike.
extension ShapeDecoder.Members {
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try self.recorder.member(type, key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try self.recorder.member(type, key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try self.recorder.member(type, key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try self.recorder.member(type, key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try self.recorder.member(type, key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try self.recorder.member(type, key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try self.recorder.member(type, key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try self.recorder.member(type, key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try self.recorder.member(type, key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try self.recorder.member(type, key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try self.recorder.member(type, key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try self.recorder.member(type, key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try self.recorder.member(type, key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try self.recorder.member(type, key) }
}

extension ShapeDecoder.Scalar {
    func decode(_ type: Bool.Type) throws -> Bool { try self.recorder.scalar(type) }
    func decode(_ type: String.Type) throws -> String { try self.recorder.scalar(type) }
    func decode(_ type: Double.Type) throws -> Double { try self.recorder.scalar(type) }
    func decode(_ type: Float.Type) throws -> Float { try self.recorder.scalar(type) }
    func decode(_ type: Int.Type) throws -> Int { try self.recorder.scalar(type) }
    func decode(_ type: Int8.Type) throws -> Int8 { try self.recorder.scalar(type) }
    func decode(_ type: Int16.Type) throws -> Int16 { try self.recorder.scalar(type) }
    func decode(_ type: Int32.Type) throws -> Int32 { try self.recorder.scalar(type) }
    func decode(_ type: Int64.Type) throws -> Int64 { try self.recorder.scalar(type) }
    func decode(_ type: UInt.Type) throws -> UInt { try self.recorder.scalar(type) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try self.recorder.scalar(type) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try self.recorder.scalar(type) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try self.recorder.scalar(type) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try self.recorder.scalar(type) }
}

extension ShapeDecoder.Elements {
    mutating func decode(_ type: Bool.Type) throws -> Bool { try self.next(type) }
    mutating func decode(_ type: String.Type) throws -> String { try self.next(type) }
    mutating func decode(_ type: Double.Type) throws -> Double { try self.next(type) }
    mutating func decode(_ type: Float.Type) throws -> Float { try self.next(type) }
    mutating func decode(_ type: Int.Type) throws -> Int { try self.next(type) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try self.next(type) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try self.next(type) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try self.next(type) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try self.next(type) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try self.next(type) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try self.next(type) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try self.next(type) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try self.next(type) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try self.next(type) }
}

/// Notes what a type asks its decoder for.
final class ShapeRecorder {
    private let name: String
    private var members: [ModelShape.Member] = []
    private var element: ModelShape?
    private var content: ModelShape?
    private var scalar: ModelShape?
    /// Members that were asked about before they were asked for: those may be missing.
    private var optional: Set<String> = []

    init(name: String) {
        self.name = name
    }

    func checkedPresence(_ key: any CodingKey) { self.optional.insert(key.stringValue) }

    func member<Value: Decodable>(_ type: Value.Type, _ key: any CodingKey) throws -> Value {
        let sample = try ShapeSample.of(type)
        if key.stringValue == ShapeDecoder.freeName {
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

/// A value of a type, and what was asked for to make it.
struct ShapeSample<Value> {
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
