/// The name of a member of a JSON object.
///
/// Names are equal if their bytes are (RFC 8259 §8.3). As Swift's strings, those would be equal that Unicode calls
/// canonically equivalent, and comparing long ones takes time that grows with the square of their marks.
package struct MemberName: Sendable, ExpressibleByStringLiteral {
    package let text: String

    package init(_ text: String) {
        self.text = text
    }

    package init(stringLiteral text: String) {
        self.text = text
    }
}

extension MemberName: Hashable {
    package static func == (first: Self, second: Self) -> Bool {
        first.text.utf8.count == second.text.utf8.count && first.text.utf8.elementsEqual(second.text.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        for byte in self.text.utf8 { hasher.combine(byte) }
    }
}
