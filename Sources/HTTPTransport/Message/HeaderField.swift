/// One field line of a message: a name and its value, both as they are on the wire (RFC 9110 §5.1).
package struct HeaderField: Sendable, Hashable {
    /// Compared without regard to letters' case; the spelling is kept.
    package let name: String
    /// Without surrounding blanks. Bytes that are not UTF-8 are replaced.
    package let value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// Whether this is the field `name`, which is given in small letters.
    package func isNamed(_ name: String) -> Bool {
        ASCIIText.equal(self.name, small: name)
    }
}
