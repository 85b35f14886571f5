import ControlAPI
import FoundationEssentials

/// Bodies of JSON, both ways.
package enum JSONBody {
    /// - Throws: `ControlProblem` with the places of what is wrong; members that `Model` does not have are wrong.
    package static func decode<Model: StrictlyRead>(_ type: Model.Type, from bytes: [UInt8]) throws(ControlProblem)
        -> Model
    {
        // The decoder would guess at other encodings; JSON that is sent to others is in UTF-8 (RFC 8259 §8.1).
        guard !bytes.contains(0), String(validating: bytes, as: UTF8.self) != nil else {
            throw ControlProblem(400, "malformed-json", "The body is no JSON text in UTF-8 (RFC 8259).")
        }
        let data = Data(bytes.isEmpty ? Array("{}".utf8) : bytes)
        do {
            try Self.checkMembers(of: type, in: try JSONDecoder().decode(MemberNames.self, from: data), at: [])
            return try JSONDecoder().decode(type, from: data)
        } catch let problem as ControlProblem {
            throw problem
        } catch let error as DecodingError {
            throw ControlProblem(error)
        } catch {
            throw ControlProblem(400, "malformed-json", "The body is no JSON text (RFC 8259).")
        }
    }

    /// Whether an object has a member of one of these names; what is no object has none.
    package static func hasMember(of names: Set<String>, in bytes: [UInt8]) -> Bool {
        guard let found = try? JSONDecoder().decode(MemberNames.self, from: Data(bytes)) else { return false }
        return found.names.contains { names.contains($0) }
    }

    private static func checkMembers(
        of type: any StrictlyRead.Type, in found: MemberNames, at path: [any CodingKey]
    ) throws(ControlProblem) {
        let unknown = found.names.filter { !type.members.contains($0) }.sorted()
        guard unknown.isEmpty else { throw Self.unknown(unknown, known: type.members, at: path) }
        for (name, inner) in type.nested.sorted(by: { $0.key < $1.key }) {
            guard let object = found.objects[name] else { continue }
            try Self.checkMembers(of: inner, in: object, at: path + [MemberNames.Key(name)])
        }
    }

    private static func unknown(_ names: [String], known: [String], at path: [any CodingKey]) -> ControlProblem {
        let place = path.isEmpty ? "The body" : JSONPointer.text(path)
        var problem = ControlProblem(
            422, "unknown-member",
            "\(place) has a member that means nothing here; known are \(known.joined(separator: ", ")).")
        problem.errors = names.prefix(16).map { name in
            ProblemField(
                pointer: JSONPointer.text(path + [MemberNames.Key(String(name.prefix(64)))]), detail: "not a member")
        }
        return problem
    }

    package static func encode(_ model: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes, .sortedKeys]
        // Our own models are all of numbers, texts, lists and members: there is nothing that could not be written.
        return (try? encoder.encode(model)).map { [UInt8]($0) } ?? Array("{}".utf8)
    }
}
