/// What a file named in a configuration is for.
package enum FileUse: Sendable, Equatable {
    /// It must be there and readable.
    case read
    /// It is appended to, and made if it is not there.
    case append
}
