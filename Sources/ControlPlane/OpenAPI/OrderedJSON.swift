import ControlAPI

/// A JSON value whose members keep their order.
package indirect enum OrderedJSON: Sendable, Equatable {
    case object([Member])
    case array([OrderedJSON])
    case string(String)
    case integer(Int)
    case number(Double)
    case boolean(Bool)

    package struct Member: Sendable, Equatable {
        package let name: String
        package var value: OrderedJSON

        package init(_ name: String, _ value: OrderedJSON) {
            self.name = name
            self.value = value
        }
    }

    static func strings(_ texts: [String]) -> OrderedJSON { .array(texts.map { .string($0) }) }

    package func write(to text: inout JSONText) {
        switch self {
        case .object(let members):
            text.beginObject()
            for member in members {
                text.escapedKey(member.name)
                member.value.write(to: &text)
            }
            text.endObject()
        case .array(let values):
            text.beginArray()
            for value in values { value.write(to: &text) }
            text.endArray()
        case .string(let string): text.string(string)
        case .integer(let number): text.number(number)
        case .number(let number): text.number(number)
        case .boolean(let value): text.boolean(value)
        }
    }

    package var bytes: [UInt8] {
        var text = JSONText(capacity: 64 << 10)
        self.write(to: &text)
        return text.bytes
    }
}

extension OrderedJSON: ExpressibleByDictionaryLiteral, ExpressibleByArrayLiteral, ExpressibleByStringLiteral,
    ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral
{
    package init(dictionaryLiteral elements: (String, OrderedJSON)...) {
        self = .object(elements.map { Member($0.0, $0.1) })
    }

    package init(arrayLiteral elements: OrderedJSON...) { self = .array(elements) }
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int) { self = .integer(value) }
    package init(floatLiteral value: Double) { self = .number(value) }
    package init(booleanLiteral value: Bool) { self = .boolean(value) }
}

extension OrderedJSON {
    init(_ value: JSONValue) {
        switch value {
        case .null: self = .object([])
        case .boolean(let value): self = .boolean(value)
        case .integer(let value): self = .integer(Int(value))
        case .number(let value): self = .number(value)
        case .string(let text): self = .string(text)
        case .array(let values): self = .array(values.map { OrderedJSON($0) })
        case .object(let members):
            self = .object(members.sorted { $0.key < $1.key }.map { Member($0.key, OrderedJSON($0.value)) })
        }
    }

    var isObject: Bool {
        if case .object = self { true } else { false }
    }

    var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The alternatives of a schema.
    var alternatives: [OrderedJSON] {
        if case .array(let all)? = self["anyOf"] { all } else { [self] }
    }

    /// The first element of an array, or the first value of an object.
    var first: OrderedJSON? {
        switch self {
        case .array(let values): values.first
        case .object(let members): members.first?.value
        case .string, .integer, .number, .boolean: nil
        }
    }

    /// A member of an object. Setting a new member appends it, setting `nil` removes it.
    package subscript(_ name: String) -> OrderedJSON? {
        get {
            guard case .object(let members) = self else { return nil }
            return members.first { $0.name == name }?.value
        }
        set {
            guard case .object(var members) = self else { return }
            if let index = members.firstIndex(where: { $0.name == name }) {
                if let newValue { members[index].value = newValue } else { members.remove(at: index) }
            } else if let newValue {
                members.append(Member(name, newValue))
            }
            self = .object(members)
        }
    }

    /// The object merged with another, whose members override those of the same name.
    func with(_ other: OrderedJSON) -> OrderedJSON {
        guard case .object(let members) = other else { return self }
        return members.reduce(into: self) { $0[$1.name] = $1.value }
    }
}
