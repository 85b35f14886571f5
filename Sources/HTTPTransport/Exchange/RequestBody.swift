/// What a request carries.
package enum RequestBody: Sendable {
    case none
    /// May be empty; Content-Length is said in any case.
    case bytes([UInt8])
    /// Pulled from `source`. With a length it is announced and held to: a source that gives more or less fails the
    /// exchange. Without, the body is sent chunked.
    case source(any BodySource, length: Int64?)

    /// `nil` if it is not known before the end.
    package var length: Int64? {
        switch self {
        case .none: 0
        case .bytes(let bytes): Int64(bytes.count)
        case .source(_, let length): length
        }
    }

    var isNone: Bool {
        if case .none = self { true } else { false }
    }
}
