import ControlAPI

extension JSONValue {
    /// The text, with the members in their order.
    package var bytes: [UInt8] {
        var text = JSONText(capacity: 64 << 10)
        self.write(to: &text)
        return text.bytes
    }

    private func write(to text: inout JSONText) {
        switch self {
        case .null: text.null()
        case .boolean(let value): text.boolean(value)
        case .integer(let number): text.number(number)
        case .number(let number): text.number(number)
        case .string(let string): text.string(string)
        case .array(let values):
            text.beginArray()
            for value in values { value.write(to: &text) }
            text.endArray()
        case .object(let members):
            text.beginObject()
            for member in members {
                text.escapedKey(member.name)
                member.value.write(to: &text)
            }
            text.endObject()
        }
    }
}

/// Parts of JSON Schemas and their examples.
extension JSONValue {
    var isObject: Bool {
        if case .object = self { true } else { false }
    }

    /// The alternatives of a schema.
    var alternatives: [JSONValue] {
        if case .array(let all)? = self["anyOf"] { all } else { [self] }
    }

    /// The first element of an array, or the first value of an object.
    var first: JSONValue? {
        if case .array(let values) = self { values.first } else { self.members.first?.value }
    }

    /// The object merged with another, whose members override those of the same name.
    func with(_ other: JSONValue) -> JSONValue {
        other.members.reduce(into: self) { $0[$1.name] = $1.value }
    }
}

/// Schemas of query parameters, with their descriptions and examples.
extension JSONValue {
    static func integer(_ range: ClosedRange<Int>, _ description: String, example: Int) -> JSONValue {
        [
            "type": "integer", "minimum": .integer(range.lowerBound), "maximum": .integer(range.upperBound),
            "description": .string(description), "example": .integer(example),
        ]
    }

    static func milliseconds(
        from minimum: Int = 0, to maximum: Int? = nil, _ description: String, example: Int = 60_000
    ) -> JSONValue {
        var schema: JSONValue = ["type": "number", "minimum": .integer(minimum)]
        schema["maximum"] = maximum.map { .integer($0) }
        return schema.with(["description": .string(description), "example": .integer(example)])
    }

    static func boolean(_ description: String, example: Bool = true) -> JSONValue {
        ["type": "boolean", "description": .string(description), "example": .boolean(example)]
    }

    static func text(_ description: String, example: String) -> JSONValue {
        ["description": .string(description), "example": .string(example)]
    }

    static func choice(_ values: [String], _ description: String, example: String) -> JSONValue {
        ["enum": .strings(values), "description": .string(description), "example": .string(example)]
    }

    static let cursor = Self.text("The cursor from the link to this page.", example: "k11.100")
    static let label = Self.text("NAME, NAME:VALUE or NAME=VALUE.", example: "team:blue")
}
