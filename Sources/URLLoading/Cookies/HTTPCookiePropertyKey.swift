/// A name in the properties of a cookie.
public struct HTTPCookiePropertyKey: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(_ rawValue: String) { self.rawValue = rawValue }
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Text; must be there.
    public static let name = HTTPCookiePropertyKey("Name")
    /// Text; must be there.
    public static let value = HTTPCookiePropertyKey("Value")
    /// A `URL` or text; gives the domain where none is named.
    public static let originURL = HTTPCookiePropertyKey("OriginURL")
    /// "0" or "1"; 0 by default.
    public static let version = HTTPCookiePropertyKey("Version")
    /// Text; with a dot before it the cookie is for the hosts below too.
    public static let domain = HTTPCookiePropertyKey("Domain")
    /// Text; must be there.
    public static let path = HTTPCookiePropertyKey("Path")
    /// Whatever it is, it makes the cookie one for secure connections; `false` alone does not.
    public static let secure = HTTPCookiePropertyKey("Secure")
    /// A `Date`, or text with a date.
    public static let expires = HTTPCookiePropertyKey("Expires")
    /// Text.
    public static let comment = HTTPCookiePropertyKey("Comment")
    /// A `URL` or text.
    public static let commentURL = HTTPCookiePropertyKey("CommentURL")
    /// "TRUE" makes a cookie of the session.
    public static let discard = HTTPCookiePropertyKey("Discard")
    /// Seconds, as text or number; counts for version 1 alone.
    public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
    /// Numbers parted by commas; of version 0 the first alone counts.
    public static let port = HTTPCookiePropertyKey("Port")
    /// "lax", "strict" or "none"; also as an `HTTPCookieStringPolicy`.
    public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
    /// Whether a script made the cookie. Kept in the properties, and without effect.
    public static let setByJavaScript = HTTPCookiePropertyKey("SetInJavaScript")

    static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
    static let created = HTTPCookiePropertyKey("Created")
}
