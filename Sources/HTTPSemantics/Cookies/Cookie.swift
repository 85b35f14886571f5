/// A cookie as it is kept (RFC 6265bis §5.7).
package struct Cookie: Equatable, Hashable, Sendable {
    /// What makes it this cookie, whatever its value: of each there is one.
    package struct Identity: Equatable, Hashable, Sendable {
        package let name: String
        package let domain: String
        package let isHostOnly: Bool
        package let path: String
    }

    package let name: String
    package let value: String
    /// In canonical form.
    package let domain: String
    /// For `domain` itself only, not for what lies below it.
    package let isHostOnly: Bool
    package let path: String
    /// `nil` ends with the session.
    package let expires: HTTPDate?
    package let isSecure: Bool
    package let isHTTPOnly: Bool
    package let sameSite: SameSite
    /// Kept when a newer cookie takes its place.
    package internal(set) var creation: HTTPDate
    /// When it last went along with a request: what goes first when room is needed.
    package internal(set) var lastAccess: HTTPDate

    package init(
        name: String, value: String, domain: String, isHostOnly: Bool, path: String, expires: HTTPDate? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite = .unspecified, creation: HTTPDate,
        lastAccess: HTTPDate? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = CookieDomain.canonical(domain)
        self.isHostOnly = isHostOnly
        self.path = path
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.creation = creation
        self.lastAccess = lastAccess ?? creation
    }

    package var isSessionOnly: Bool { self.expires == nil }

    package func isExpired(at now: HTTPDate) -> Bool {
        self.expires.map { $0 <= now } ?? false
    }

    package var identity: Identity {
        Identity(name: self.name, domain: self.domain, isHostOnly: self.isHostOnly, path: self.path)
    }
}
