import HTTPTypes

/// What `Content-Length` says (RFC 9110 §8.6).
package enum ContentLength: Equatable, Sendable {
    case absent
    case bytes(Int64)
    /// No number, one too large, or several that differ: the message must not be believed.
    case invalid

    package init(_ fields: HTTPFields) {
        let lines = fields[values: .contentLength]
        guard !lines.isEmpty else {
            self = .absent
            return
        }
        // Equal ones in one list are one (RFC 9112 §6.3).
        let parts = Set(
            lines.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }.map(\.trimmingBlanks))
        guard parts.count == 1, let part = parts.first, part.utf8.count <= 18,
            let value = part.clampedDecimal(limit: .max)
        else {
            self = .invalid
            return
        }
        self = .bytes(value)
    }
}
