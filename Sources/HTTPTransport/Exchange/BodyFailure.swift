/// Why a request's body could not be sent whole.
package enum BodyFailure: Sendable, Hashable {
    /// The source answered `.failed`; it knows why.
    case sourceFailed
    /// The source ended before the length that was announced.
    case tooShort(missing: Int64)
    /// The source went on behind the length that was announced.
    case tooLong
}
