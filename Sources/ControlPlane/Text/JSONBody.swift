import ControlAPI
import FoundationEssentials

/// Bodies of JSON, both ways.
package enum JSONBody {
    /// - Throws: `ControlProblem` with the places of what is wrong; members that `Model` does not have are wrong.
    package static func decode<Model: StrictlyRead>(_ type: Model.Type, from bytes: [UInt8]) throws(ControlProblem)
        -> Model
    {
        let data = Data(bytes.isEmpty ? Array("{}".utf8) : bytes)
        do {
            let found = try JSONDecoder().decode(MemberNames.self, from: data)
            let unknown = found.names.filter { !Model.members.contains($0) }.sorted()
            guard unknown.isEmpty else { throw Self.unknown(unknown, known: Model.members) }
            return try JSONDecoder().decode(type, from: data)
        } catch let problem as ControlProblem {
            throw problem
        } catch let error as DecodingError {
            throw ControlProblem(error)
        } catch {
            throw ControlProblem(400, "malformed-json", "The body is no JSON text (RFC 8259).")
        }
    }

    private static func unknown(_ names: [String], known: [String]) -> ControlProblem {
        var problem = ControlProblem(
            422, "unknown-member",
            "The body has a member that means nothing here; known are \(known.joined(separator: ", ")).")
        problem.errors = names.prefix(16).map { name in
            ProblemField(pointer: JSONPointer.text([MemberNames.Key(name)]), detail: "not a member")
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
