import Foundation

/// Foundation's JSON parser, so that our output is checked by another implementation.
enum JSONReading {
    static func read<Model: Decodable>(_ type: Model.Type, _ bytes: [UInt8]) throws -> Model {
        try JSONDecoder().decode(type, from: Data(bytes))
    }

    static func names(_ bytes: [UInt8]) throws -> Set<String> {
        let object = try JSONSerialization.jsonObject(with: Data(bytes))
        return Set((object as? [String: Any] ?? [:]).keys)
    }
}
