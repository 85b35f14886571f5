import ByteKernels
import ControlAPI
import FoundationEssentials
import WireText

/// Decodes and encodes JSON bodies.
package enum JSONBody {
    /// An empty body counts as an empty object.
    /// - Throws: `ControlProblem` with pointers to the invalid members: given twice, unknown to `Model`, missing, of the
    ///   wrong type, or against the rules that `Model` declares.
    package static func decode<Model: StrictDecodable>(_ type: Model.Type, from bytes: [UInt8]) throws(ControlProblem)
        -> Model
    {
        let bytes = bytes.isEmpty ? Array("{}".utf8) : bytes
        // The content of messages, which their receivers get unchanged.
        let passedOn = type.members.filter { if case .any = $0.form { true } else { false } }
        var reader = BodyReader(bytes, passedOn: Set(passedOn.map { MemberName($0.name) }))
        try Self.check(try reader.read(), against: type.form, at: "")
        // Malformed JSON and values of the wrong type were found already.
        guard let model = try? JSONDecoder().decode(type, from: Data(reader.withoutContent)) else {
            throw ControlProblem.malformedJSON
        }
        try Self.checkValues(of: model, at: "")
        return model
    }

    /// The value of a request's body.
    /// - Throws: `ControlProblem` 400 for malformed JSON, 422 with a pointer for a member that its object has twice, a
    ///   number that is too large, text with half of a surrogate pair, and a name that is too long.
    static func value(_ bytes: [UInt8]) throws(ControlProblem) -> JSONValue {
        var reader = BodyReader(bytes)
        return try reader.read()
    }

    /// Whether `bytes` are an object with a member of one of these names.
    package static func hasMember(of names: Set<String>, in bytes: [UInt8]) -> Bool {
        let names = Set(names.map { MemberName($0) })
        var isFound = false
        let isObject = JSONReader.readDocument(bytes) { (name, member) throws(JSONSyntaxError) in
            if names.contains(name) { isFound = true }
            try member.skipValue()
        }
        return isObject && isFound
    }

    // MARK: Types

    /// Checks the names and the types of all members.
    private static func check(
        _ value: JSONValue, against form: MemberForm, at pointer: String
    ) throws(ControlProblem) {
        switch (form, value) {
        case (.any, _), (.string, .string), (.boolean, .boolean), (.integer, .integer), (.number, .integer),
            (.number, .number):
            break
        case (.count, .integer(let number)) where number >= 0: break
        case (.array(let element), .array(let values)):
            for (index, value) in values.enumerated() {
                try Self.check(value, against: element, at: "\(pointer)/\(index)")
            }
        case (.map(let content), .object(let members)):
            for member in members {
                try Self.check(member.value, against: content, at: JSONPointer.member(member.name, of: pointer))
            }
        case (.model(let model), .object): try Self.check(value, of: model, at: pointer)
        case (.string, _), (.boolean, _), (.integer, _), (.count, _), (.number, _), (.array, _), (.map, _), (.model, _):
            let subject = pointer.isEmpty ? "The body" : pointer
            let found = value == .null ? ", not null" : ""
            throw ControlProblem(422, "wrong-type", "\(subject) must be \(form.expectation)\(found).").at(
                pointer: pointer)
        }
    }

    private static func check(
        _ object: JSONValue, of model: any ControlModel.Type, at pointer: String
    ) throws(ControlProblem) {
        let declared = model.members
        let known = declared.map { MemberName($0.name) }
        let unknown = object.members.map(\.name).filter { !known.contains(MemberName($0)) }
        guard unknown.isEmpty || !(model is any StrictDecodable.Type) else {
            throw Self.unknown(unknown, known: known.map(\.text), at: pointer)
        }
        for member in declared {
            let place = JSONPointer.member(member.name, of: pointer)
            switch object[member.name] {
            case nil where member.isRequired:
                throw ControlProblem(422, "missing-member", "The member \(place) is missing.").at(pointer: place)
            case .null? where !member.isRequired: break
            case nil: break
            case let value?: try Self.check(value, against: member.form, at: place)
            }
        }
    }

    private static func unknown(_ names: [String], known: [String], at pointer: String) -> ControlProblem {
        let parent = pointer.isEmpty ? "The body" : pointer
        var problem = ControlProblem(
            422, "unknown-member", "\(parent) has an unknown member; known are \(known.joined(separator: ", ")).")
        problem.errors = names.prefix(16).map { name in
            ProblemField { ($0.pointer, $0.detail) = (JSONPointer.member(name, of: pointer), "not a member") }
        }
        return problem
    }

    // MARK: Rules

    private static func checkValues(of model: any ControlModel, at pointer: String) throws(ControlProblem) {
        for (declared, member) in zip(type(of: model).members, model.members) {
            guard let value = member.value else { continue }
            let place = JSONPointer.member(member.name, of: pointer)
            if let inner = value as? any StrictDecodable {
                try Self.checkValues(of: inner, at: place)
            } else if let expected = declared.rules.expectation(violatedBy: value) {
                throw .invalid(place, "\(place.dropFirst()) must \(expected).")
            }
        }
    }

    package static func encode(_ model: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        // Encoding the wire models cannot fail.
        return (try? encoder.encode(model)).map { [UInt8]($0) } ?? Array("{}".utf8)
    }
}

/// Reads the JSON body of a request, and finds what no model can hold.
private struct BodyReader {
    /// Nesting of arrays and objects that `JSONDecoder` accepts.
    private static let depthLimit = 512
    /// Longest name of a member in bytes. Models and configurations look names up as strings, which takes time that grows
    /// with the square of a name's combining marks.
    private static let nameLimit = 256

    private let bytes: [UInt8]
    private let passedOn: Set<MemberName>
    /// Ranges in `bytes` of the values of the members `passedOn`.
    private var contents: [Range<Int>] = []
    /// Names and indices that lead to the value that is being read.
    private var path: [String] = []
    /// The first that was found.
    private var problem: ControlProblem?

    /// - Parameter passedOn: members of the outer object whose values are not decoded, but passed on as they are.
    init(_ bytes: [UInt8], passedOn: Set<MemberName> = []) {
        self.bytes = bytes
        self.passedOn = passedOn
    }

    /// The body with `true` in place of each value that is passed on.
    var withoutContent: [UInt8] {
        self.contents.reversed().reduce(into: self.bytes) { $0.replaceSubrange($1, with: "true".utf8) }
    }

    /// - Returns: the body, with `true` in place of each value that is passed on.
    mutating func read() throws(ControlProblem) -> JSONValue {
        // `JSONDecoder` skips a byte order mark, as RFC 8259 §8.1 permits.
        let start = self.bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        var reader = JSONReader(self.bytes, in: start..<self.bytes.count, maximumDepth: Self.depthLimit)
        // UTF-8 only (RFC 8259 §8.1): `JSONDecoder` would accept other encodings.
        guard String(validating: self.bytes, as: UTF8.self) != nil, let value = try? self.value(&reader),
            reader.isAtEnd()
        else { throw .malformedJSON }
        if let problem { throw problem }
        return value
    }

    private mutating func value(_ reader: inout JSONReader) throws(JSONSyntaxError) -> JSONValue {
        switch reader.nextKind() {
        case .object: return .object(try self.members(&reader))
        case .array:
            var values: [JSONValue] = []
            try reader.readArray { (element) throws(JSONSyntaxError) in
                self.path.append("\(values.count)")
                values.append(try self.value(&element))
                self.path.removeLast()
            }
            return .array(values)
        case .string:
            if let text = try reader.readWholeString() { return .string(text) }
            self.problem =
                self.problem ?? .invalid(self.pointer, "\(self.subject) is text with half of a surrogate pair.")
            return .null
        case .number: return try self.number(&reader)
        case .boolean: return .boolean(try reader.readBool())
        case .null, nil:
            try reader.skipValue()
            return .null
        }
    }

    private mutating func members(_ reader: inout JSONReader) throws(JSONSyntaxError) -> [JSONValue.Member] {
        var names: Set<MemberName> = []
        var members: [JSONValue.Member] = []
        try reader.readObject { (name, member) throws(JSONSyntaxError) in
            if name.text.utf8.count > Self.nameLimit {
                self.problem =
                    self.problem ?? .invalid(self.pointer, "A member's name has at most \(Self.nameLimit) bytes.")
            }
            self.path.append(name.text)
            if !names.insert(name).inserted { self.problem = self.problem ?? .memberOccursTwice(at: self.pointer) }
            if self.path.count == 1, self.passedOn.contains(name), member.nextKind() != .null {
                self.contents.append(try member.skipValue())
                members.append(JSONValue.Member(name.text, true))
            } else {
                members.append(JSONValue.Member(name.text, try self.value(&member)))
            }
            self.path.removeLast()
        }
        return members
    }

    private mutating func number(_ reader: inout JSONReader) throws(JSONSyntaxError) -> JSONValue {
        var whole = reader
        if let number = try? whole.readInt() {
            reader = whole
            return .integer(number)
        }
        let number = try reader.readDouble()
        if !number.isFinite {
            self.problem = self.problem ?? .invalid(self.pointer, "\(self.subject) is a number out of range.")
        }
        return Int(exactly: number).map { .integer($0) } ?? .number(number)
    }

    private var pointer: String { self.path.reduce("") { JSONPointer.member($1, of: $0) } }

    private var subject: String { self.path.isEmpty ? "The body" : self.pointer }
}

extension ControlProblem {
    /// Programs differ in which one of the two they take (RFC 8259 §4), so one that checked the request may have seen the
    /// other.
    fileprivate static func memberOccursTwice(at pointer: String) -> Self {
        Self(422, "duplicate-member", "The member \(pointer) occurs more than once.").at(pointer: pointer)
    }
}

/// A member's name in its JSON form, stored inline: a list writes some forty names for each of thousands of
/// connections, which must not cost reference counting.
package struct JSONKey: Sendable, ExpressibleByStringLiteral {
    /// Longest name in bytes.
    package static let lengthLimit = 28

    /// `,"name":`, padded with zeros.
    private var bytes = InlineArray<32, UInt8>(repeating: 0)
    private var count = 0

    /// - Parameter name: at most `lengthLimit` bytes without characters that need escaping.
    package init(_ name: String) {
        assert(name.utf8.count <= Self.lengthLimit, "\(name) is too long for a key")
        self.append(UInt8(ascii: ","))
        self.append(UInt8(ascii: "\""))
        for byte in name.utf8.prefix(Self.lengthLimit) { self.append(byte) }
        self.append(UInt8(ascii: "\""))
        self.append(UInt8(ascii: ":"))
    }

    package init(stringLiteral value: String) {
        self.init(value)
    }

    private mutating func append(_ byte: UInt8) {
        self.bytes[self.count] = byte
        self.count += 1
    }

    /// Capacity that `write(withComma:to:)` needs.
    static var capacity: Int { Self.lengthLimit + 4 }

    /// - Parameter comma: `false` for the first member of an object.
    @inline(__always)
    func write(withComma comma: Bool, to output: inout OutputSpan<UInt8>) {
        output.append(copying: self.bytes.span.extracting((comma ? 0 : 1)..<self.count))
    }
}

/// Writes JSON pointers (RFC 6901).
enum JSONPointer {
    /// The pointer to the member `name` of the value at `pointer`. `name` is cut after 64 scalars.
    static func member(_ name: String, of pointer: String) -> String {
        pointer + Self.step(String(name.unicodeScalars.prefix(64)))
    }

    static func step(_ name: String) -> String {
        "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
    }
}

extension MemberForm {
    /// What is expected, as in "must be a string".
    fileprivate var expectation: String {
        switch self {
        case .string: "a string"
        case .integer: "a whole number"
        case .count: "a whole number from 0 up"
        case .number: "a number"
        case .boolean: "true or false"
        case .any: "a value"
        case .array: "an array"
        case .map, .model: "an object"
        }
    }
}

extension MemberRules {
    /// - Returns: what is expected of a value that breaks the rules, as in "must be from 1 to 5"; `nil` for an allowed
    ///   value.
    fileprivate func expectation(violatedBy value: any MemberValue) -> String? {
        switch value {
        case let text as String:
            if !self.words.isEmpty, !self.words.contains(text) {
                return "be one of \(self.words.joined(separator: ", "))"
            }
            if let limit = self.byteLimit, text.utf8.count > limit { return "have at most \(limit) bytes" }
        case let number as Int: return self.expectation(violatedBy: Double(number))
        case let number as Double:
            guard let minimum = self.minimum, let maximum = self.maximum else { return nil }
            if number < Double(minimum) || number > Double(maximum) {
                return "be from \(minimum) to \(maximum)\(self.isMilliseconds ? " ms" : "")"
            }
        case let members as [String: String]:
            if let limit = self.countLimit, members.count > limit { return "have at most \(limit) members" }
        default: break
        }
        return nil
    }
}
