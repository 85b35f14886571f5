/// An entity tag (RFC 9110 §8.8.3).
package struct EntityTag: Equatable, Sendable {
    /// Longer ones are none.
    package static let limit = 4096

    package let isWeak: Bool
    /// With its quotes.
    package let opaque: String

    /// - Returns: `nil` for what is no entity tag. A tag without quotes, which some servers send, is taken as strong.
    package init?(_ text: String) {
        var text = text.trimmingBlanks
        guard text.utf8.count <= Self.limit, !text.isEmpty else { return nil }
        self.isWeak = text.hasPrefix("W/")
        if self.isWeak { text = String(text.dropFirst(2)) }
        let content =
            text.utf8.count >= 2 && text.hasPrefix("\"") && text.hasSuffix("\"")
            ? Array(text.utf8.dropFirst().dropLast()) : Array(text.utf8)
        guard !text.isEmpty, content.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") }) else {
            return nil
        }
        self.opaque = text
    }

    package var fieldValue: String { self.isWeak ? "W/" + self.opaque : self.opaque }

    /// Byte for byte the same (RFC 9110 §8.8.3.2).
    package func stronglyMatches(_ other: Self) -> Bool {
        !self.isWeak && !other.isWeak && self.opaque == other.opaque
    }

    /// As good as the same.
    package func weaklyMatches(_ other: Self) -> Bool { self.opaque == other.opaque }
}
