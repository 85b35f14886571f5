/// A member of a model, declared once: its name and type are those of the property; the rules say the rest.
///
/// From the declaration come the JSON coding, the check of requests, and the schema in the OpenAPI document.
@propertyWrapper
package struct Member<Value: MemberValue>: Sendable {
    package var wrappedValue: Value
    /// Made on demand, so that a model is not larger for its descriptions.
    private let makeRules: @Sendable () -> MemberRules

    package init(wrappedValue: Value, _ rules: @autoclosure @escaping @Sendable () -> MemberRules = MemberRules()) {
        self.wrappedValue = wrappedValue
        self.makeRules = rules
    }

    /// - Parameter rules: the description alone, or rules with one.
    package init<Wrapped>(_ rules: @autoclosure @escaping @Sendable () -> MemberRules = MemberRules())
    where Value == Wrapped? {
        self.wrappedValue = nil
        self.makeRules = rules
    }
}

extension Member: Equatable {
    package static func == (left: Self, right: Self) -> Bool { left.wrappedValue == right.wrappedValue }
}

extension Member: Codable {
    package init(from decoder: any Decoder) throws {
        self.init(wrappedValue: try Value(from: decoder))
    }

    package func encode(to encoder: any Encoder) throws {
        try self.wrappedValue.encode(to: encoder)
    }
}

// The synthesized coding of models uses these, so that a member without a value is left out.
extension KeyedDecodingContainer {
    package func decode<Value>(_ type: Member<Value>.Type, forKey key: Key) throws -> Member<Value> {
        Member(wrappedValue: try self.decode(Value.self, forKey: key))
    }

    package func decode<Value>(_ type: Member<Value?>.Type, forKey key: Key) throws -> Member<Value?> {
        Member(wrappedValue: try self.decodeIfPresent(Value.self, forKey: key))
    }
}

extension KeyedEncodingContainer {
    package mutating func encode<Value>(_ member: Member<Value?>, forKey key: Key) throws {
        try self.encodeIfPresent(member.wrappedValue, forKey: key)
    }
}

// MARK: Rules

/// What the type of a member does not say: its description, and the values that are allowed.
package struct MemberRules: Sendable, Equatable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    package enum Format: Sendable, Equatable {
        /// RFC 3339 in UTC.
        case time
        case uri
        /// RFC 4648 §4.
        case base64
    }

    package var description = ""
    package var format: Format?
    /// The allowed values of a string.
    package var words: [String] = []
    /// Limits of a number.
    package var minimum: Int?
    package var maximum: Int?
    package var isMilliseconds = false
    /// Longest string, in bytes of UTF-8.
    package var byteLimit: Int?
    /// Most members of an object.
    package var countLimit: Int?

    package init(_ description: String = "") {
        self.description = description
    }

    package init(stringLiteral description: String) {
        self.init(description)
    }

    private static func make(_ description: String, _ change: (inout Self) -> Void) -> Self {
        var rules = Self(description)
        change(&rules)
        return rules
    }

    package static func words(_ words: [String], _ description: String = "") -> Self {
        self.make(description) { $0.words = words }
    }

    package static func range(_ range: ClosedRange<Int>, _ description: String = "") -> Self {
        self.make(description) { ($0.minimum, $0.maximum) = (range.lowerBound, range.upperBound) }
    }

    package static func milliseconds(_ description: String = "") -> Self {
        self.make(description) { ($0.minimum, $0.isMilliseconds) = (0, true) }
    }

    package static func milliseconds(_ range: ClosedRange<Int>, _ description: String = "") -> Self {
        self.make(description) {
            ($0.minimum, $0.maximum, $0.isMilliseconds) = (range.lowerBound, range.upperBound, true)
        }
    }

    package static func time(_ description: String = "") -> Self { self.make(description) { $0.format = .time } }
    package static func uri(_ description: String) -> Self { self.make(description) { $0.format = .uri } }
    package static func base64(_ description: String = "") -> Self { self.make(description) { $0.format = .base64 } }

    package static func text(limit: Int, _ description: String = "") -> Self {
        self.make(description) { $0.byteLimit = limit }
    }

    /// Labels: at most 64.
    package static func labels(_ description: String = "") -> Self {
        self.make(description) { $0.countLimit = 64 }
    }
}

// MARK: Types

/// The JSON type of a member.
package indirect enum MemberForm: Sendable {
    case string, integer, number, boolean
    /// An integer from 0 up.
    case count
    /// Any JSON value.
    case any
    case array(of: MemberForm)
    /// An object with arbitrary names.
    case map(of: MemberForm)
    case model(any ControlModel.Type)
}

/// A type that a member may have.
package protocol MemberValue: Codable, Sendable, Equatable {
    static var form: MemberForm { get }
}

extension String: MemberValue { package static var form: MemberForm { .string } }
extension Int: MemberValue { package static var form: MemberForm { .integer } }
extension Int64: MemberValue { package static var form: MemberForm { .integer } }
extension UInt64: MemberValue { package static var form: MemberForm { .count } }
extension Double: MemberValue { package static var form: MemberForm { .number } }
extension Bool: MemberValue { package static var form: MemberForm { .boolean } }
extension JSONValue: MemberValue { package static var form: MemberForm { .any } }

extension Optional: MemberValue where Wrapped: MemberValue {
    package static var form: MemberForm { Wrapped.form }
}

extension Array: MemberValue where Element: MemberValue {
    package static var form: MemberForm { .array(of: Element.form) }
}

extension Dictionary: MemberValue where Key == String, Value: MemberValue {
    package static var form: MemberForm { .map(of: Value.form) }
}

// MARK: Models

/// A JSON object of the REST interface. All its properties are `@Member`s.
package protocol ControlModel: MemberValue {
    init()
}

/// A request. Unknown members are rejected, so that a misspelt member is not silently ignored.
package protocol StrictDecodable: ControlModel {}

extension ControlModel {
    /// A model whose members `set` sets; a required one is otherwise empty or 0.
    package init(_ set: (inout Self) -> Void) {
        self.init()
        set(&self)
    }

    package static var form: MemberForm { .model(Self.self) }

    /// The declared members, in the order of their declaration.
    package static var members: [MemberDeclaration] { Self().members }

    /// The members with their values. Rules are those of an instance that was not decoded.
    package var members: [MemberDeclaration] {
        Mirror(reflecting: self).children.compactMap { child in
            guard let label = child.label, let member = child.value as? any DeclaredMember else { return nil }
            return member.declaration(String(label.dropFirst()))
        }
    }
}

/// A member as it is declared.
package struct MemberDeclaration: Sendable {
    package let name: String
    package let form: MemberForm
    package let isRequired: Bool
    package let rules: MemberRules
    /// `nil` if the member is missing.
    package let value: (any MemberValue)?
}

private protocol DeclaredMember {
    func declaration(_ name: String) -> MemberDeclaration
}

private protocol OptionalValue {
    var memberValue: (any MemberValue)? { get }
}

extension Optional: OptionalValue where Wrapped: MemberValue {
    fileprivate var memberValue: (any MemberValue)? { self }
}

extension Member: DeclaredMember {
    fileprivate func declaration(_ name: String) -> MemberDeclaration {
        let optional = self.wrappedValue as? any OptionalValue
        return MemberDeclaration(
            name: name, form: Value.form, isRequired: !(Value.self is any OptionalValue.Type), rules: self.makeRules(),
            value: optional.map(\.memberValue) ?? self.wrappedValue)
    }
}
