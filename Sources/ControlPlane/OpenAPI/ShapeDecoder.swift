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
            self.recorder.askedAbout(key)
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
