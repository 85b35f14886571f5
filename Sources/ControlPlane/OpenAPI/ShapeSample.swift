import ControlAPI

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
