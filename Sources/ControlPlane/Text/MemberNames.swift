/// The names of an object's members, and those of the objects among them one level down.
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

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        self.names = container.allKeys.map(\.stringValue)
        self.objects = container.allKeys.reduce(into: [:]) { objects, key in
            // What is no object has no members to be wrong.
            guard let inner = try? container.nestedContainer(keyedBy: Key.self, forKey: key) else { return }
            objects[key.stringValue] = MemberNames(names: inner.allKeys.map(\.stringValue))
        }
    }

    private init(names: [String]) {
        self.names = names
        self.objects = [:]
    }
}
