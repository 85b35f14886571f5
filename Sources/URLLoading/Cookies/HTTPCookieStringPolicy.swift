/// With which requests of other sites a cookie goes along (RFC 6265bis §5.6.7).
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// With those alone that bring the user to the site.
    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    /// With none.
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}
