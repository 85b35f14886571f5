/// A header field with a name that is a token and a value without control characters (RFC 9110 §5).
package struct ExtraHeader: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
