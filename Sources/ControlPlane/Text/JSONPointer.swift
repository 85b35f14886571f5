/// The way to one value of a JSON document (RFC 6901).
enum JSONPointer {
    static func text(_ path: [any CodingKey]) -> String {
        path.map { key in Self.step(key.intValue.map { String($0) } ?? key.stringValue) }.joined()
    }

    /// To the member `name` of what stands at `pointer`; of a longer name, the first 64 characters.
    static func member(_ name: String, of pointer: String) -> String {
        pointer + Self.step(String(name.prefix(64)))
    }

    private static func step(_ name: String) -> String {
        "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
    }
}
