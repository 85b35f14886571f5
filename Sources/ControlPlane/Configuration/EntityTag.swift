import StreamTransport

/// What names the state of a resource (RFC 9110 §8.8.3): its revision, and the process, as another one begins to count
/// anew.
package struct EntityTag: Sendable, Hashable, CustomStringConvertible {
    private static let process = String(Machine.randomWords(1).first ?? 0, radix: 36)

    package let description: String

    package init(revision: UInt64) {
        self.description = "\"\(Self.process)-\(revision)\""
    }

    /// Whether `field` keeps a request from passing that is about what has the tag `current`.
    /// - Parameter field: the value of `If-None-Match` (RFC 9110 §13.1.2), whose tags may be weak.
    package static func excludes(_ field: String?, _ current: EntityTag?) -> Bool {
        guard let field, let current else { return false }
        if field.trimmingSpaces == "*" { return true }
        return field.split(separator: ",").contains { text in
            let tag = text.trimmingSpaces
            return (tag.hasPrefix("W/") ? String(tag.dropFirst(2)) : tag) == current.description
        }
    }

    /// Whether `field` lets a request pass that is about what has the tag `current`; `nil` is about nothing.
    /// - Parameter field: the value of `If-Match` (RFC 9110 §13.1.1); without one everything passes.
    package static func matches(_ field: String?, _ current: EntityTag?) -> Bool {
        guard let field else { return true }
        guard let current else { return false }
        if field.trimmingSpaces == "*" { return true }
        // Ours hold no comma, so that others may be cut to pieces.
        return field.split(separator: ",").contains { $0.trimmingSpaces == current.description }
    }
}
