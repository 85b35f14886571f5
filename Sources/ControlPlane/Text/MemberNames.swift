/// The names of an object's members, whatever stands behind them.
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

    init(from decoder: any Decoder) throws {
        self.names = try decoder.container(keyedBy: Key.self).allKeys.map(\.stringValue)
    }
}
