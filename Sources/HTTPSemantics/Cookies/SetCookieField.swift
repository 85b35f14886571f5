/// One `Set-Cookie` field taken apart, and not yet judged (RFC 6265bis §5.6).
package struct SetCookieField: Equatable, Sendable {
    /// One attribute behind the name and the value.
    package struct Attribute: Equatable, Sendable {
        /// As it came; attributes are told apart without regard to case.
        package let name: String
        /// `nil` where no equals sign came.
        package let value: String?
    }

    /// Octets that the name and the value may have together.
    package static let nameAndValueLimit = 4096
    /// Octets that the value of an attribute may have; a longer one is as if it had not come.
    package static let attributeLimit = 1024
    /// Attributes beyond this many are not read.
    package static let attributeCountLimit = 64

    /// Empty where there was no equals sign, or nothing before it: the RFC keeps such a cookie, Foundation does not.
    package let name: String
    package let value: String
    /// In the order in which they came; those without a name are left out.
    package let attributes: [Attribute]

    /// - Returns: `nil` for a field that must be ignored: one with control characters, one too long, one that names
    ///   nothing and has no value.
    package init?(_ text: String) {
        let bytes = Self.trimmed(Array(text.utf8)[...])
        guard !bytes.contains(where: \.isControl) else { return nil }
        let pieces = bytes.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
        guard let first = pieces.first else { return nil }
        let pair = Self.pair(first)
        self.name = pair.value == nil ? "" : pair.name
        self.value = pair.value ?? pair.name
        let size = self.name.utf8.count + self.value.utf8.count
        guard size > 0, size <= Self.nameAndValueLimit else { return nil }
        self.attributes = pieces.dropFirst().prefix(Self.attributeCountLimit).compactMap { piece in
            let pair = Self.pair(piece)
            guard !pair.name.isEmpty, pair.value?.utf8.count ?? 0 <= Self.attributeLimit else { return nil }
            return Attribute(name: pair.name, value: pair.value)
        }
    }

    /// The last attribute of that name counts (RFC 6265bis §5.7).
    package func attribute(_ name: String) -> Attribute? {
        self.attributes.last { $0.name.matchesIgnoringCase(name) }
    }

    private static func pair(_ bytes: ArraySlice<UInt8>) -> (name: String, value: String?) {
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else { return (self.text(bytes), nil) }
        return (self.text(bytes[..<equals]), self.text(bytes[(equals + 1)...]))
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: self.trimmed(bytes), as: UTF8.self)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let rest = bytes.drop(while: \.isBlank)
        guard let last = rest.lastIndex(where: { !$0.isBlank }) else { return rest }
        return rest[...last]
    }
}
