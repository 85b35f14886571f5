/// One header field.
package struct Header: Codable, Sendable, Equatable {
    package var name: String
    package var value: String

    package init(
        name: String, value: String
    ) {
        self.name = name
        self.value = value
    }
}
