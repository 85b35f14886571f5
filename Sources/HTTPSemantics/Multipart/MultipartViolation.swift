/// What is wrong with a content of several parts.
package enum MultipartViolation: Error, Equatable, Sendable {
    /// The fields of a part are larger, or more, than is accepted.
    case headTooLarge
    /// It ended within a part, and no delimiter said so: of a stream of pictures that is how most end.
    case truncated
    /// It ended before any part had begun.
    case noParts
}
