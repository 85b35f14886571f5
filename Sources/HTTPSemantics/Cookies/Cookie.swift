import WireText

/// A stored cookie (RFC 6265bis §5.7).
package struct Cookie: Equatable, Hashable, Sendable {
    /// The attributes that identify a cookie: a new one with the same identity replaces it.
    ///
    /// Names and paths are equal if their bytes are (RFC 6265bis §5.7). As Swift's strings they would be compared in a
    /// normal form, which takes long to find for many combining characters.
    package struct Identity: Hashable, Sendable {
        package let name: String
        package let domain: String
        package let isHostOnly: Bool
        package let path: String

        package static func == (one: Self, other: Self) -> Bool {
            one.isHostOnly == other.isHostOnly && one.domain == other.domain
                && one.name.utf8.elementsEqual(other.name.utf8) && one.path.utf8.elementsEqual(other.path.utf8)
        }

        package func hash(into hasher: inout Hasher) {
            hasher.combine(self.domain)
            for byte in self.name.utf8 { hasher.combine(byte) }
            for byte in self.path.utf8 { hasher.combine(byte) }
        }
    }

    package let name: String
    package let value: String
    /// In canonical form.
    package let domain: String
    /// For `domain` only, not for its subdomains.
    package let isHostOnly: Bool
    package let path: String
    /// `nil` for a session cookie.
    package let expires: HTTPDate?
    package let isSecure: Bool
    package let isHTTPOnly: Bool
    package let sameSite: SameSite
    /// A cookie that replaces this one keeps the creation time.
    package internal(set) var creation: HTTPDate
    /// When it was last sent; decides which cookie is evicted first.
    package internal(set) var lastAccess: HTTPDate
    /// Its place in the order in which the jar stored its cookies. A cookie that replaces this one keeps it.
    var number: UInt64 = 0

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

/// Domain matching of cookies (RFC 6265bis §5.1.2, §5.1.3).
package enum CookieDomain {
    /// The domain in lower case, without leading and trailing dot, and without the brackets of an IPv6 address.
    ///
    /// Internationalized names must be given as A-labels (`xn--`), as in URLs.
    package static func canonical(_ domain: String) -> String {
        var lowered = domain.loweredASCII
        if lowered.hasPrefix(".") { lowered.removeFirst() }
        if lowered.hasSuffix("."), !self.isAddress(lowered) { lowered.removeLast() }
        if lowered.hasPrefix("["), lowered.hasSuffix("]") { lowered = String(lowered.dropFirst().dropLast()) }
        return lowered
    }

    /// Whether `host` is `domain` or one of its subdomains. Both in canonical form; an address has no subdomains.
    package static func matches(_ host: String, domain: String) -> Bool {
        if host == domain { return true }
        guard !domain.isEmpty, host.utf8.count > domain.utf8.count,
            host.utf8.suffix(domain.utf8.count).elementsEqual(domain.utf8)
        else { return false }
        let boundary = host.utf8.dropLast(domain.utf8.count).last
        return boundary == UInt8(ascii: ".") && !self.isAddress(host)
    }

    /// Whether `host` is an address, also in a short form such as `127.1`: resolvers read a name that ends in a number as an
    /// IPv4 address.
    package static func isAddress(_ host: String) -> Bool {
        // Only IPv6 addresses contain a colon.
        if host.utf8.contains(UInt8(ascii: ":")) { return true }
        let dot = host.utf8.lastIndex(of: UInt8(ascii: "."))
        let last = host.utf8[(dot.map { host.utf8.index(after: $0) } ?? host.startIndex)...]
        if last.starts(with: "0x".utf8) { return last.dropFirst(2).allSatisfy { $0.hexadecimalValue != nil } }
        return !last.isEmpty && last.allSatisfy(\.isDigit)
    }

    /// The registrable domain of `host`: its public suffix and one more label. A host without one is its own site.
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

    /// Whether two hosts belong to the same site.
    package static func areSameSite(_ one: String, _ other: String, suffixes: PublicSuffixRule) -> Bool {
        self.site(of: one, suffixes: suffixes) == self.site(of: other, suffixes: suffixes)
    }
}

/// Path matching of cookies (RFC 6265bis §5.1.4).
package enum CookiePath {
    /// The default path of cookies without a Path attribute: the directory of the request's path.
    /// - Parameter path: of the request, without query.
    package static func defaultPath(for path: String) -> String {
        guard path.utf8.first == UInt8(ascii: "/"), let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")),
            slash != path.startIndex
        else { return "/" }
        return String(path[..<slash])
    }

    /// Whether the request path `path` path-matches `cookiePath`.
    package static func matches(_ path: String, cookiePath: String) -> Bool {
        let path = path.isEmpty ? "/" : path
        guard path.utf8.starts(with: cookiePath.utf8) else { return false }
        if path.utf8.count == cookiePath.utf8.count { return true }
        return cookiePath.utf8.last == UInt8(ascii: "/")
            || path.utf8.dropFirst(cookiePath.utf8.count).first == UInt8(ascii: "/")
    }
}

/// The SameSite attribute: which cross-site requests a cookie is sent with (RFC 6265bis §5.6.7).
package enum SameSite: String, Equatable, Sendable {
    /// Absent or unknown: all. RFC 6265bis has the rules of `lax` for it, which no platform's Foundation applies.
    case unspecified
    /// All, if the cookie is secure.
    case none
    /// Top-level navigations with a safe method.
    case lax
    /// None.
    case strict

    /// Parses the attribute's value without regard to case.
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
