import HTTPTypes

/// A coding of content (RFC 9110 §8.4.1).
package enum ContentCoding: Equatable, Sendable {
    case gzip
    case deflate
    /// Brotli and whatever else is not known here, in lower case.
    case other(String)

    /// Codings one upon the other beyond this many are not undone: nobody honest comes near.
    package static let limit = 4

    /// The codings that were put on the content, in the order in which they were; `identity` is none.
    /// - Returns: `nil` for more than the limit.
    package static func list(_ fields: HTTPFields) -> [Self]? {
        let codings = FieldList.elements(fields[values: .contentEncoding]).map(\.loweredASCII)
            .filter { $0 != "identity" }
        guard codings.count <= self.limit else { return nil }
        return codings.map { name in
            switch name {
            case "gzip", "x-gzip": .gzip
            case "deflate": .deflate
            default: .other(name)
            }
        }
    }
}
