import ControlAPI

extension ControlProblem {
    /// What is wrong with a body, with the place of it.
    package init(_ error: DecodingError) {
        switch error {
        case .keyNotFound(let key, let context):
            let pointer = JSONPointer.text(context.codingPath + [key])
            self = Self(422, "missing-member", "The member \(pointer) is missing.").at(pointer: pointer)
        case .typeMismatch(let type, let context):
            let pointer = JSONPointer.text(context.codingPath)
            self = Self(
                422, "wrong-type", "\(Self.place(pointer)) is to be \(Self.words(for: type))."
            )
            .at(pointer: pointer)
        case .valueNotFound(let type, let context):
            let pointer = JSONPointer.text(context.codingPath)
            self = Self(422, "wrong-type", "\(Self.place(pointer)) is to be \(Self.words(for: type)), not null.").at(
                pointer: pointer)
        case .dataCorrupted(let context) where !context.codingPath.isEmpty:
            let pointer = JSONPointer.text(context.codingPath)
            self = Self(422, "invalid-value", "\(pointer) has a value that cannot be meant.").at(pointer: pointer)
        case .dataCorrupted: self = .malformedJSON
        @unknown default: self = .malformedJSON
        }
    }

    private static let malformedJSON = ControlProblem(400, "malformed-json", "The body is no JSON text (RFC 8259).")

    private static func place(_ pointer: String) -> String { pointer.isEmpty ? "The body" : pointer }

    private static func words(for type: any Any.Type) -> String {
        switch type {
        case is String.Type: "a string"
        case is Bool.Type: "true or false"
        case is Double.Type: "a number"
        case is any BinaryInteger.Type: "a whole number"
        case is any Collection.Type: "\(type)".hasPrefix("Dictionary") ? "an object" : "an array"
        default: "an object"
        }
    }

    /// A member with a value that it may not have.
    package static func invalid(_ pointer: String, _ detail: String) -> ControlProblem {
        ControlProblem(422, "invalid-value", detail).at(pointer: pointer)
    }
}
