/// The way to one value of a JSON document (RFC 6901).
enum JSONPointer {
    static func text(_ path: [any CodingKey]) -> String {
        path.map { key in
            let name = key.intValue.map { String($0) } ?? key.stringValue
            return "/" + name.replacing("~", with: "~0").replacing("/", with: "~1")
        }.joined()
    }
}
