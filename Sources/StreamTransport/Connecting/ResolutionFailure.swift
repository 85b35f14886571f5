/// Why a name gave no address.
package enum ResolutionFailure: Error, Hashable, Sendable {
    /// The name does not exist, or has no address.
    case nameNotFound
    /// The name service did not answer, or asked to try again.
    case temporarilyUnavailable
    /// Too many lookups wait already; try again later.
    case tooManyLookups
    /// Anything else, in the resolver's words.
    case failed(String)
}
