/// What the rules of cookies ask about a request.
package struct CookieRequest: Equatable, Sendable {
    /// In canonical form.
    package let host: String
    /// Without the query; never empty.
    package let path: String
    /// Over TLS, or to this machine alone as `isSecure` was given.
    package let isSecure: Bool
    /// Whether what caused the request is of the same site (RFC 6265bis §5.2). A request that no document caused is.
    package let isSameSite: Bool
    /// Whether it brings the user to the site by a safe method, which lets lax cookies go along.
    package let isSafeNavigation: Bool
    /// Whether the cookies are for HTTP itself, and not for a script.
    package let isForHTTP: Bool

    package init(
        host: String, path: String, isSecure: Bool, isSameSite: Bool = true, isSafeNavigation: Bool = false,
        isForHTTP: Bool = true
    ) {
        self.host = CookieDomain.canonical(host)
        self.path = path.isEmpty ? "/" : path
        self.isSecure = isSecure
        self.isSameSite = isSameSite
        self.isSafeNavigation = isSafeNavigation
        self.isForHTTP = isForHTTP
    }

    /// Whether `cookie` goes along, its age aside (RFC 6265bis §5.8.3, step 1).
    package func takes(_ cookie: Cookie) -> Bool {
        guard cookie.isHostOnly ? self.host == cookie.domain : CookieDomain.matches(self.host, domain: cookie.domain),
            CookiePath.matches(self.path, cookiePath: cookie.path), self.isSecure || !cookie.isSecure,
            self.isForHTTP || !cookie.isHTTPOnly
        else { return false }
        switch cookie.sameSite {
        case .none: return true
        case .lax, .unspecified: return self.isSameSite || self.isSafeNavigation
        case .strict: return self.isSameSite
        }
    }
}
