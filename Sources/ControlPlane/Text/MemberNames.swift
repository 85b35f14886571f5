/// The names of an object's members, and those of the objects in it, as deep as models go.
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

    /// Levels of objects below the outermost: a tunnel has connections, which have TLS.
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
            // What is no object has no members to be wrong.
            guard let inner = try? container.nestedContainer(keyedBy: Key.self, forKey: key) else { return }
            objects[key.stringValue] = MemberNames(inner, depth: depth - 1)
        }
    }
}
