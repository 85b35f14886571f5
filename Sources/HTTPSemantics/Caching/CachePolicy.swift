/// What a request wants of the cache: the policies of `URLRequest`, by their meaning.
package enum CachePolicy: Equatable, Sendable, CaseIterable {
    /// What RFC 9111 says.
    case protocolDecides
    /// As if nothing were kept here.
    case reload
    /// The same, and caches on the way are told so too.
    case reloadEverywhere
    /// What is kept here, however old; else from the server.
    case storedElseLoad
    /// What is kept here, however old; else nothing.
    case storedOnly
    /// What is kept here once the server has said that it still holds.
    case revalidate
}
