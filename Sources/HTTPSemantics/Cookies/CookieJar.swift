import WireText

/// The cookie store of RFC 6265bis §5.7 and §5.8, as a bounded value without a clock.
package struct CookieJar: Sendable {
    /// The result of storing a cookie.
    package enum StoreOutcome: Equatable, Sendable {
        case stored
        /// Replaced an older cookie of the same identity.
        case replaced
        /// Had already expired, which is how servers delete a cookie: whether there was one to delete.
        case removed(Bool)
        case refused(CookieRefusal)
    }

    package let limits: CookieLimits
    package let suffixes: PublicSuffixRule
    package private(set) var count = 0
    /// Cookies by domain, in the order in which they were stored.
    private var cookiesByDomain: [String: [Cookie]] = [:]
    /// The sites of domains with cookies, as far as they had to be found out.
    private var sites: [String: String] = [:]
    private var lastNumber: UInt64 = 0

    /// - Parameters:
    ///   - cookies: restored cookies; only the limits are applied to them.
    package init(
        _ cookies: [Cookie] = [], limits: CookieLimits = CookieLimits(), suffixes: PublicSuffixRule = .singleLabels
    ) {
        self.limits = limits
        self.suffixes = suffixes
        for cookie in cookies { _ = self.insert(cookie, now: cookie.lastAccess) }
    }

    /// All cookies, expired ones included, in the order in which they were stored.
    package var cookies: [Cookie] { self.cookiesByDomain.values.flatMap { $0 }.sorted { $0.number < $1.number } }

    /// Stores a cookie received from a server, if the rules of RFC 6265bis §5.7 allow it.
    package mutating func store(_ set: SetCookie, from request: CookieRequest, now: HTTPDate) -> StoreOutcome {
        do throws(CookieRefusal) {
            let cookie = try self.validated(set, from: request, now: now)
            return self.insert(cookie, now: now)
        } catch {
            return .refused(error)
        }
    }

    /// Stores a cookie created by the program, for any domain and any lifetime.
    package mutating func insert(_ cookie: Cookie, now: HTTPDate) -> StoreOutcome {
        var cookie = cookie
        let old = self.cookiesByDomain[cookie.domain]?.firstIndex { cookie.identity == $0.identity }
        if cookie.isExpired(at: now) {
            guard let old else { return .removed(false) }
            self.remove(at: old, of: cookie.domain)
            return .removed(true)
        }
        if let old, let previous = self.cookiesByDomain[cookie.domain]?[old] {
            cookie.creation = previous.creation
            cookie.number = previous.number
            self.cookiesByDomain[cookie.domain]?[old] = cookie
            return .replaced
        }
        self.lastNumber += 1
        cookie.number = self.lastNumber
        self.cookiesByDomain[cookie.domain, default: []].append(cookie)
        self.count += 1
        self.makeRoom(in: cookie.domain, now: now)
        return .stored
    }

    /// The cookies to send with a request, longer paths first, then the older ones. Updates their last access time.
    /// - Source: RFC 6265bis §5.8.3.
    package mutating func retrieve(for request: CookieRequest, now: HTTPDate) -> [Cookie] {
        var found: [Cookie] = []
        guard self.count > 0 else { return found }
        for domain in Self.domains(over: request.host) {
            guard let cookies = self.cookiesByDomain[domain] else { continue }
            for (index, cookie) in cookies.enumerated() where request.matches(cookie) && !cookie.isExpired(at: now) {
                found.append(cookie)
                if cookie.lastAccess < now { self.cookiesByDomain[domain]?[index].lastAccess = now }
            }
        }
        return Self.ordered(found)
    }

    /// Removes all cookies for which `isUnwanted` is true.
    /// - Returns: the removed cookies.
    package mutating func removeAll(where isUnwanted: (Cookie) -> Bool) -> [Cookie] {
        var removed: [Cookie] = []
        for (domain, cookies) in self.cookiesByDomain {
            let unwanted = cookies.filter(isUnwanted)
            guard !unwanted.isEmpty else { continue }
            removed += unwanted
            let kept = cookies.filter { !isUnwanted($0) }
            self.cookiesByDomain[domain] = kept.isEmpty ? nil : kept
            if kept.isEmpty { self.sites[domain] = nil }
        }
        self.count -= removed.count
        return removed
    }

    /// Enforces the limits: removes expired cookies; then those of the domain; then those of the site with the most cookies,
    /// so that no site empties the jar of others. Cookies that are not secure are removed before others, and among equals
    /// the least recently used.
    private mutating func makeRoom(in domain: String, now: HTTPDate) {
        let exceedsDomain = self.cookiesByDomain[domain]?.count ?? 0 > self.limits.perDomain
        guard exceedsDomain || self.count > self.limits.total else { return }
        _ = self.removeAll { $0.isExpired(at: now) }
        while let cookies = self.cookiesByDomain[domain], cookies.count > self.limits.perDomain {
            guard let index = cookies.indices.min(by: { Self.isEvictedBefore(cookies[$0], cookies[$1]) }) else { break }
            self.remove(at: index, of: domain)
        }
        while self.count > self.limits.total {
            guard let excess = self.cookiesOfLargestSites().min(by: Self.isEvictedBefore),
                let index = self.cookiesByDomain[excess.domain]?.firstIndex(where: { $0.number == excess.number })
            else { break }
            self.remove(at: index, of: excess.domain)
        }
    }

    /// The cookies of the site that has the most, or of all sites that have as many.
    private mutating func cookiesOfLargestSites() -> [Cookie] {
        var counts: [String: Int] = [:]
        for (domain, cookies) in self.cookiesByDomain {
            let site = self.sites[domain] ?? CookieDomain.site(of: domain, suffixes: self.suffixes)
            self.sites[domain] = site
            counts[site, default: 0] += cookies.count
        }
        let most = counts.values.max()
        let sites = self.sites
        return self.cookiesByDomain.filter { domain, _ in sites[domain].flatMap { counts[$0] } == most }
            .flatMap(\.value)
    }

    private mutating func remove(at index: Int, of domain: String) {
        self.cookiesByDomain[domain]?.remove(at: index)
        self.count -= 1
        guard self.cookiesByDomain[domain]?.isEmpty == true else { return }
        self.cookiesByDomain[domain] = nil
        self.sites[domain] = nil
    }

    private static func isEvictedBefore(_ one: Cookie, _ other: Cookie) -> Bool {
        guard one.isSecure == other.isSecure else { return other.isSecure }
        return (one.lastAccess, one.number) < (other.lastAccess, other.number)
    }

    private static func ordered(_ cookies: [Cookie]) -> [Cookie] {
        cookies.sorted {
            ($1.path.utf8.count, $0.creation, $0.number) < ($0.path.utf8.count, $1.creation, $1.number)
        }
    }

    private static func domains(over host: String) -> [String] {
        if CookieDomain.isAddress(host) { return [host] }
        var domains = [host]
        var rest = host.utf8[...]
        // A name has at most 127 labels (RFC 1035 §2.3.4).
        while let dot = rest.firstIndex(of: UInt8(ascii: ".")), domains.count < 128 {
            rest = rest[rest.index(after: dot)...]
            domains.append(String(Substring(rest)))
        }
        return domains
    }

    /// Applies the rules of RFC 6265bis §5.7 in order.
    private func validated(
        _ set: SetCookie, from request: CookieRequest, now: HTTPDate
    ) throws(CookieRefusal) -> Cookie {
        try Self.checkSyntax(set)
        let domain = try self.domain(of: set, from: request)
        let cookie = Cookie(
            name: set.name, value: set.value, domain: domain ?? request.host, isHostOnly: domain == nil,
            path: set.path ?? CookiePath.defaultPath(for: request.path),
            expires: set.expires.map { min($0, now.advanced(by: self.limits.lifetime)) }, isSecure: set.isSecure,
            isHTTPOnly: set.isHTTPOnly, sameSite: set.sameSite, creation: now)
        try self.checkSecurity(cookie, from: request)
        try Self.checkSite(cookie, from: request)
        try Self.checkPrefix(cookie, pathWasNamed: set.path != nil)
        return cookie
    }

    private static func checkSyntax(_ set: SetCookie) throws(CookieRefusal) {
        let size = set.name.utf8.count + set.value.utf8.count
        let isForbidden = { (byte: UInt8) in byte.isControl || byte == UInt8(ascii: ";") }
        guard size > 0, size <= SetCookieField.nameAndValueLimit, !set.name.utf8.contains(where: isForbidden),
            !set.value.utf8.contains(where: isForbidden), !set.name.utf8.contains(UInt8(ascii: "="))
        else { throw .malformed }
        guard set.path?.utf8.contains(where: isForbidden) != true else { throw .malformed }
    }

    /// - Returns: `nil` for a host-only cookie.
    private func domain(of set: SetCookie, from request: CookieRequest) throws(CookieRefusal) -> String? {
        guard !set.isDomainInvalid else { throw .domainMismatch }
        guard let domain = set.domain, !domain.isEmpty else { return nil }
        if CookieDomain.isAddress(domain) {
            guard domain == request.host else { throw .domainMismatch }
            return nil
        }
        if self.suffixes.isPublicSuffix(domain) {
            guard domain == request.host else { throw .publicSuffix }
            return nil
        }
        guard CookieDomain.matches(request.host, domain: domain) else { throw .domainMismatch }
        return domain
    }

    /// An insecure connection may neither set a secure cookie nor overlay one.
    private func checkSecurity(_ cookie: Cookie, from request: CookieRequest) throws(CookieRefusal) {
        guard !request.isSecure else { return }
        guard !cookie.isSecure else { throw .insecureConnection }
        let overlaysSecure = self.cookiesByDomain.contains { domain, cookies in
            guard
                CookieDomain.matches(domain, domain: cookie.domain)
                    || CookieDomain.matches(cookie.domain, domain: domain)
            else { return false }
            return cookies.contains {
                $0.isSecure && $0.name.utf8.elementsEqual(cookie.name.utf8)
                    && CookiePath.matches(cookie.path, cookiePath: $0.path)
            }
        }
        guard !overlaysSecure else { throw .insecureConnection }
    }

    private static func checkSite(_ cookie: Cookie, from request: CookieRequest) throws(CookieRefusal) {
        switch cookie.sameSite {
        case .unspecified: break
        case .none:
            guard cookie.isSecure else { throw .sameSiteNoneWithoutSecure }
        case .lax, .strict:
            guard request.isSameSite || request.isSafeNavigation else { throw .crossSite }
        }
    }

    private static func checkPrefix(_ cookie: Cookie, pathWasNamed: Bool) throws(CookieRefusal) {
        let text = cookie.name.isEmpty ? cookie.value : cookie.name
        let isSecureName = text.beginsIgnoringCase("__Secure-")
        let isHostName = text.beginsIgnoringCase("__Host-")
        guard isSecureName || isHostName else { return }
        // A nameless cookie with this value would be sent back as if it had the name.
        guard !cookie.name.isEmpty, cookie.isSecure else { throw .invalidNamePrefix }
        guard !isHostName || cookie.isHostOnly && pathWasNamed && cookie.path == "/" else { throw .invalidNamePrefix }
    }
}

/// The properties of a request that cookie rules depend on.
package struct CookieRequest: Equatable, Sendable {
    /// In canonical form.
    package let host: String
    /// Without query; never empty.
    package let path: String
    /// Whether the caller considers the connection secure, as TLS or loopback.
    package let isSecure: Bool
    /// Whether the request is same-site (RFC 6265bis §5.2); true without an initiating document.
    package let isSameSite: Bool
    /// Whether the request is a top-level navigation with a safe method, which lax cookies are sent with.
    package let isSafeNavigation: Bool

    package init(
        host: String, path: String, isSecure: Bool, isSameSite: Bool = true, isSafeNavigation: Bool = false
    ) {
        self.host = CookieDomain.canonical(host)
        self.path = path.isEmpty ? "/" : path
        self.isSecure = isSecure
        self.isSameSite = isSameSite
        self.isSafeNavigation = isSafeNavigation
    }

    /// Whether `cookie` is sent with this request, expiry aside (RFC 6265bis §5.8.3, step 1).
    package func matches(_ cookie: Cookie) -> Bool {
        guard cookie.isHostOnly ? self.host == cookie.domain : CookieDomain.matches(self.host, domain: cookie.domain),
            CookiePath.matches(self.path, cookiePath: cookie.path), self.isSecure || !cookie.isSecure
        else { return false }
        switch cookie.sameSite {
        case .none, .unspecified: return true
        case .lax: return self.isSameSite || self.isSafeNavigation
        case .strict: return self.isSameSite
        }
    }
}

/// The limits of a jar; excess cookies are evicted in the order of RFC 6265bis §5.7.
package struct CookieLimits: Equatable, Sendable {
    /// Cookies of one domain; RFC 6265bis §6.1 demands at least 50.
    package var perDomain: Int
    /// Cookies in all; RFC 6265bis §6.1 demands at least 3000.
    package var total: Int
    /// Longest lifetime of a server's cookie in seconds; longer ones are capped (RFC 6265bis §5.5).
    package var lifetime: Int64

    /// - Parameters:
    ///   - perDomain: 180, as in browsers; at least 1.
    ///   - total: 3300, as in browsers; at least 1.
    ///   - lifetime: 400 days; at least 1 second.
    package init(perDomain: Int = 180, total: Int = 3300, lifetime: Int64 = 400 * 86_400) {
        self.perDomain = max(1, perDomain)
        self.total = max(1, total)
        self.lifetime = max(1, lifetime)
    }
}

/// Why a cookie was not stored (RFC 6265bis §5.7).
package enum CookieRefusal: Error, Equatable, Sendable {
    /// Name and value are empty, too long, or contain characters that are not allowed in the Cookie field.
    case malformed
    case publicSuffix
    /// The host does not belong to the cookie's domain.
    case domainMismatch
    /// An insecure connection would set or overlay a secure cookie.
    case insecureConnection
    /// A cross-site response may not set a SameSite cookie.
    case crossSite
    case sameSiteNoneWithoutSecure
    /// The name begins with `__Secure-` or `__Host-`, but the attributes do not meet its requirements.
    case invalidNamePrefix
}

/// Decides which domains are public suffixes, for which no cookie may be set (RFC 6265bis §5.7, step 7).
///
/// The caller supplies the list.
package struct PublicSuffixRule: Sendable {
    /// Treats only domains of one label, such as `com` and `localhost`, as public suffixes.
    package static let singleLabels = PublicSuffixRule { !$0.utf8.contains(UInt8(ascii: ".")) }

    private let isSuffix: @Sendable (String) -> Bool

    /// - Parameter isSuffix: called with a domain in canonical form, never with an address; must not block.
    package init(_ isSuffix: @escaping @Sendable (String) -> Bool) {
        self.isSuffix = isSuffix
    }

    package func isPublicSuffix(_ domain: String) -> Bool {
        domain.isEmpty || !CookieDomain.isAddress(domain) && self.isSuffix(domain)
    }
}
