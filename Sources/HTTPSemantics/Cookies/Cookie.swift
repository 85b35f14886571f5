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

/// The rules about the hosts that a cookie belongs to (RFC 6265bis §5.1.2, §5.1.3).
package enum CookieDomain {
    /// Lower case, without a leading dot and without the dot at the end that names the root.
    ///
    /// Names beyond ASCII are to be given in their `xn--` form, which is how URLs hold them.
    package static func canonical(_ domain: String) -> String {
        var lowered = domain.loweredASCII
        if lowered.hasPrefix(".") { lowered.removeFirst() }
        if lowered.hasSuffix("."), !self.isAddress(lowered) { lowered.removeLast() }
        if lowered.hasPrefix("["), lowered.hasSuffix("]") { lowered = String(lowered.dropFirst().dropLast()) }
        return lowered
    }

    /// Whether `host` is `domain` or lies below it. Both in canonical form; nothing lies below an address.
    package static func matches(_ host: String, domain: String) -> Bool {
        if host == domain { return true }
        guard !domain.isEmpty, host.utf8.count > domain.utf8.count,
            host.utf8.suffix(domain.utf8.count).elementsEqual(domain.utf8)
        else { return false }
        let boundary = host.utf8.dropLast(domain.utf8.count).last
        return boundary == UInt8(ascii: ".") && !self.isAddress(host)
    }

    /// Whether `host` is an IPv4 or an IPv6 address and no name.
    package static func isAddress(_ host: String) -> Bool {
        var parts = 1
        var digits = 0
        for byte in host.utf8 {
            switch byte {
            case UInt8(ascii: ":"):
                // Only an address has a colon.
                return true
            case UInt8(ascii: ".") where digits > 0:
                parts += 1
                digits = 0
            case UInt8(ascii: "0")...UInt8(ascii: "9") where digits < 3: digits += 1
            // Of a name with a colon in it there is none to be asked for.
            default: return host.utf8.contains(UInt8(ascii: ":"))
            }
        }
        return parts == 4 && digits > 0
    }

    /// The domain that a site is known by: one label more than its public suffix. A host without one is its own site.
    package static func site(of host: String, suffixes: PublicSuffixRule) -> String {
        let host = self.canonical(host)
        if self.isAddress(host) || suffixes.isPublicSuffix(host) { return host }
        var site = host.utf8[...]
        while let dot = site.firstIndex(of: UInt8(ascii: ".")) {
            let parent = site[site.index(after: dot)...]
            if suffixes.isPublicSuffix(String(Substring(parent))) { return String(Substring(site)) }
            site = parent
        }
        return host
    }

    /// Whether two hosts are of one site: what "only from the main document's domain" asks.
    package static func areSameSite(_ one: String, _ other: String, suffixes: PublicSuffixRule) -> Bool {
        self.site(of: one, suffixes: suffixes) == self.site(of: other, suffixes: suffixes)
    }
}

/// The rules about the paths that a cookie belongs to (RFC 6265bis §5.1.4).
package enum CookiePath {
    /// The folder of a request's path, for cookies that name no path.
    /// - Parameter path: of the request, without its query.
    package static func defaultPath(for path: String) -> String {
        guard path.utf8.first == UInt8(ascii: "/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether a cookie for `cookiePath` goes along with a request for `path`.
    package static func matches(_ path: String, cookiePath: String) -> Bool {
        let path = path.isEmpty ? "/" : path
        guard path.utf8.starts(with: cookiePath.utf8) else { return false }
        if path.utf8.count == cookiePath.utf8.count { return true }
        return cookiePath.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(cookiePath.utf8.count).first == UInt8(ascii: "/")
    }
}

/// With which requests a cookie goes along that another site caused (RFC 6265bis §5.6.7).
package enum SameSite: String, Equatable, Sendable {
    /// The server did not say; treated like `lax`.
    case unspecified
    /// With all, if the cookie is secure.
    case none
    /// With safe ones that bring the user to the site.
    case lax
    /// With none.
    case strict

    /// The value of the attribute, in either case; what is unknown says nothing.
    package init(attribute value: String?) {
        self =
            switch value?.loweredASCII {
            case "none": .none
            case "lax": .lax
            case "strict": .strict
            default: .unspecified
            }
    }
}
