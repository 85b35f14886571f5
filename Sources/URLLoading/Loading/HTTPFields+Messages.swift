import HTTPTypes

extension HTTPFields {
    /// The fields of a request as a program set them.
    init(_ values: [String: String]?) {
        self.init()
        for (name, value) in (values ?? [:]).sorted(by: { $0.key < $1.key }) {
            guard let name = HTTPField.Name(name) else { continue }
            self.append(HTTPField(name: name, value: value))
        }
    }

    /// By their names, repeated ones joined.
    var values: [String: String] {
        var values: [String: String] = [:]
        for field in self { values[field.name.rawName] = self[field.name] }
        return values
    }

    /// The fields of a message as it came, at most as many as the transport lets in.
    init(lines: some Sequence<(name: String, value: String)>) {
        self.init()
        for line in lines {
            guard let name = HTTPField.Name(line.name) else { continue }
            self.append(HTTPField(name: name, value: line.value))
        }
    }
}
