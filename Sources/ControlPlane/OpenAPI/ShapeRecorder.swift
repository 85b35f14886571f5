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

    func askedAbout(_ key: any CodingKey) { self.optional.insert(key.stringValue) }

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
