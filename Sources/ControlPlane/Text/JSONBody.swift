import ByteKernels
import ControlAPI
import FoundationEssentials

/// Decodes and encodes JSON bodies.
package enum JSONBody {
    /// - Throws: `ControlProblem` with pointers to the invalid members: unknown to `Model`, of the wrong type, or against
    ///   the rules that `Model` declares.
    package static func decode<Model: StrictDecodable>(_ type: Model.Type, from bytes: [UInt8]) throws(ControlProblem)
        -> Model
    {
        let data = try Self.validated(bytes.isEmpty ? Array("{}".utf8) : bytes)
        do {
            try Self.checkMembers(of: type, in: try JSONDecoder().decode(MemberNames.self, from: data), at: [])
            let model = try JSONDecoder().decode(type, from: data)
            try Self.checkValues(of: model, at: "")
            return model
        } catch let problem as ControlProblem {
            throw problem
        } catch let error as DecodingError {
            throw Self.numberProblem(type, data) ?? ControlProblem(error)
        } catch {
            throw ControlProblem.malformedJSON
        }
    }

    /// - Throws: `ControlProblem` 400 for malformed JSON, 422 with a pointer for a number that is too large.
    static func value(_ bytes: [UInt8]) throws(ControlProblem) -> JSONValue {
        let data = try Self.validated(bytes)
        do {
            return try JSONDecoder().decode(JSONValue.self, from: data)
        } catch let error as DecodingError {
            throw Self.rangeProblem(error) ?? ControlProblem(error)
        } catch {
            throw ControlProblem.malformedJSON
        }
    }

    /// Checks that `bytes` are UTF-8 (RFC 8259 §8.1), as the decoder would accept other encodings.
    private static func validated(_ bytes: [UInt8]) throws(ControlProblem) -> Data {
        guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else {
            throw ControlProblem(400, "malformed-json", "The body is not valid JSON in UTF-8 (RFC 8259).")
        }
        return Data(bytes)
    }

    // MARK: Numbers

    /// Locates a number of the wrong type, such as 1.5 for an integer: the decoder's error has no path to it.
    private static func numberProblem(_ type: any ControlModel.Type, _ data: Data) -> ControlProblem? {
        do {
            let value = try JSONDecoder().decode(JSONValue.self, from: data)
            return Self.wrongNumber(in: value, of: type.form, at: [])
        } catch let error as DecodingError {
            return Self.rangeProblem(error)
        } catch {
            return nil
        }
    }

    private static func rangeProblem(_ error: DecodingError) -> ControlProblem? {
        guard case .dataCorrupted(let context) = error, !context.codingPath.isEmpty else { return nil }
        let pointer = JSONPointer.text(context.codingPath)
        return .invalid(pointer, "\(pointer) is out of range.")
    }

    private static func wrongNumber(
        in value: JSONValue, of form: MemberForm, at path: [any CodingKey]
    ) -> ControlProblem? {
        switch (form, value) {
        case (.integer, .number), (.count, .number): return Self.notWhole(path, "a whole number")
        case (.count, .integer(let number)) where number < 0: return Self.notWhole(path, "a whole number from 0 up")
        case (.array(let element), .array(let values)):
            return values.enumerated().lazy.compactMap { index, value in
                Self.wrongNumber(in: value, of: element, at: path + [MemberNames.Key("\(index)")])
            }.first
        case (.map(let content), .object(let members)):
            return members.sorted { $0.key < $1.key }.lazy.compactMap { name, value in
                Self.wrongNumber(in: value, of: content, at: path + [MemberNames.Key(name)])
            }.first
        case (.model(let model), .object(let members)):
            return model.members.lazy.compactMap { member in
                members[member.name].flatMap {
                    Self.wrongNumber(in: $0, of: member.form, at: path + [MemberNames.Key(member.name)])
                }
            }.first
        default: return nil
        }
    }

    private static func notWhole(_ path: [any CodingKey], _ expected: String) -> ControlProblem {
        let pointer = JSONPointer.text(path)
        return ControlProblem(422, "wrong-type", "\(pointer) must be \(expected).").at(pointer: pointer)
    }

    /// Whether `bytes` are an object with a member of one of these names.
    package static func hasMember(of names: Set<String>, in bytes: [UInt8]) -> Bool {
        guard let found = try? JSONDecoder().decode(MemberNames.self, from: Data(bytes)) else { return false }
        return found.names.contains { names.contains($0) }
    }

    private static func checkMembers(
        of type: any StrictDecodable.Type, in found: MemberNames, at path: [any CodingKey]
    ) throws(ControlProblem) {
        let members = type.members
        let known = members.map(\.name)
        let unknown = found.names.filter { !known.contains($0) }.sorted()
        guard unknown.isEmpty else { throw Self.unknown(unknown, known: known, at: path) }
        for member in members {
            guard case .model(let inner as any StrictDecodable.Type) = member.form,
                let object = found.objects[member.name]
            else { continue }
            try Self.checkMembers(of: inner, in: object, at: path + [MemberNames.Key(member.name)])
        }
    }

    private static func unknown(_ names: [String], known: [String], at path: [any CodingKey]) -> ControlProblem {
        let parent = path.isEmpty ? "The body" : JSONPointer.text(path)
        var problem = ControlProblem(
            422, "unknown-member", "\(parent) has an unknown member; known are \(known.joined(separator: ", ")).")
        problem.errors = names.prefix(16).map { name in
            ProblemField(
                pointer: JSONPointer.text(path + [MemberNames.Key(String(name.prefix(64)))]), detail: "not a member")
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

/// A member's name in its JSON form, stored inline: a list writes some forty names for each of thousands of connections,
/// which must not cost reference counting.
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
    static func text(_ path: [any CodingKey]) -> String {
        path.map { key in Self.step(key.intValue.map { String($0) } ?? key.stringValue) }.joined()
    }

    /// The pointer to the member `name` of the value at `pointer`. `name` is cut after 64 characters.
    static func member(_ name: String, of pointer: String) -> String {
        pointer + Self.step(String(name.prefix(64)))
    }

    static func step(_ name: String) -> String {
        "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
    }
}

/// The member names of an object and of the objects nested in it.
struct MemberNames: Decodable {
    struct Key: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(_ name: String) {
            self.stringValue = name
        }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            nil
        }
    }

    let names: [String]
    let objects: [String: MemberNames]

    /// Levels below the outermost object: a tunnel contains connections, which contain TLS settings.
    private static let depth = 2

    init(from decoder: any Decoder) throws {
        self.init(try decoder.container(keyedBy: Key.self), depth: Self.depth)
    }

    private init(_ container: KeyedDecodingContainer<Key>, depth: Int) {
        self.names = container.allKeys.map(\.stringValue)
        guard depth > 0 else {
            self.objects = [:]
            return
        }
        self.objects = container.allKeys.reduce(into: [:]) { objects, key in
            guard let inner = try? container.nestedContainer(keyedBy: Key.self, forKey: key) else { return }
            objects[key.stringValue] = MemberNames(inner, depth: depth - 1)
        }
    }
}

extension MemberRules {
    /// - Returns: what is expected of a value that breaks the rules, as in "must be from 1 to 5"; `nil` for an allowed value.
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
