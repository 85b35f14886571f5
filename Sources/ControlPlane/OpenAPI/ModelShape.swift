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
