/// The store of cookies of RFC 6265bis §5.7 and §5.8: bounded, without a clock of its own, a value.
package struct CookieJar: Sendable {
    /// What became of a cookie that was to be kept.
    package enum StoreOutcome: Equatable, Sendable {
        case stored
        /// It took the place of an older one.
        case replaced
        /// It had ended already: that is how servers take a cookie back. Whether there was one to remove.
        case removed(Bool)
        case refused(CookieRefusal)
    }

    package let limits: CookieLimits
    package let suffixes: PublicSuffixRule
    package private(set) var count = 0
    /// By domain; within one, the earlier stored comes first.
    private(set) var cookiesByDomain: [String: [Cookie]] = [:]

    /// - Parameters:
    ///   - cookies: those kept from an earlier run; only the limits are applied to them.
    package init(
        _ cookies: [Cookie] = [], limits: CookieLimits = CookieLimits(), suffixes: PublicSuffixRule = .singleLabels
    ) {
        self.limits = limits
        self.suffixes = suffixes
        for cookie in cookies { _ = self.insert(cookie, now: cookie.lastAccess) }
    }

    /// All cookies, the ended ones included, in no order that means anything.
    package var cookies: [Cookie] { self.cookiesByDomain.values.flatMap { $0 } }

    /// Judges a cookie that a server sent, and keeps it if it may be kept.
    package mutating func store(_ set: SetCookie, from request: CookieRequest, now: HTTPDate) -> StoreOutcome {
        do throws(CookieRefusal) {
            let cookie = try self.validated(set, from: request, now: now)
            return self.insert(cookie, now: now)
        } catch {
            return .refused(error)
        }
    }

    /// Keeps a cookie that the program itself made: it may be for any domain, and live as long as it likes.
    package mutating func insert(_ cookie: Cookie, now: HTTPDate) -> StoreOutcome {
        var cookie = cookie
        let old = self.cookiesByDomain[cookie.domain]?.firstIndex { cookie.identity == $0.identity }
        if cookie.isExpired(at: now) {
            guard let old else { return .removed(false) }
            self.remove(at: old, of: cookie.domain)
            return .removed(true)
        }
        if let old, let before = self.cookiesByDomain[cookie.domain]?[old] {
            cookie.creation = before.creation
            self.cookiesByDomain[cookie.domain]?[old] = cookie
            return .replaced
        }
        self.cookiesByDomain[cookie.domain, default: []].append(cookie)
        self.count += 1
        self.makeRoom(in: cookie.domain, now: now)
        return .stored
    }

    /// The cookies that go along with a request, in the order in which they are written: longer paths first, then the
    /// earlier made. They count as used now.
    package mutating func retrieve(for request: CookieRequest, now: HTTPDate) -> [Cookie] {
        var found: [Cookie] = []
        guard self.count > 0 else { return found }
        for domain in Self.domains(over: request.host) {
            guard let shelf = self.cookiesByDomain[domain] else { continue }
            for (index, cookie) in shelf.enumerated() where request.matches(cookie) && !cookie.isExpired(at: now) {
                found.append(cookie)
                if cookie.lastAccess < now { self.cookiesByDomain[domain]?[index].lastAccess = now }
            }
        }
        return Self.ordered(found)
    }

    /// The same without counting as use.
    package func peek(for request: CookieRequest, now: HTTPDate) -> [Cookie] {
        let found = Self.domains(over: request.host).flatMap { self.cookiesByDomain[$0] ?? [] }
        return Self.ordered(found.filter { request.matches($0) && !$0.isExpired(at: now) })
    }

    /// Takes out all cookies that `isUnwanted`.
    /// - Returns: those taken out.
    package mutating func removeAll(where isUnwanted: (Cookie) -> Bool) -> [Cookie] {
        var removed: [Cookie] = []
        for (domain, shelf) in self.cookiesByDomain {
            let unwanted = shelf.filter(isUnwanted)
            guard !unwanted.isEmpty else { continue }
            removed += unwanted
            let kept = shelf.filter { !isUnwanted($0) }
            self.cookiesByDomain[domain] = kept.isEmpty ? nil : kept
        }
        self.count -= removed.count
        return removed
    }
}

extension CookieJar {
    /// Room is made of what has ended, then of what is not secure, then of the rest, and of equals the one goes that
    /// has not been used for longest.
    private mutating func makeRoom(in domain: String, now: HTTPDate) {
        let crowded = self.cookiesByDomain[domain]?.count ?? 0 > self.limits.perDomain
        guard crowded || self.count > self.limits.total else { return }
        _ = self.removeAll { $0.isExpired(at: now) }
        while let shelf = self.cookiesByDomain[domain], shelf.count > self.limits.perDomain {
            guard let index = Self.leastWanted(shelf) else { break }
            self.remove(at: index, of: domain)
        }
        while self.count > self.limits.total {
            let oldest = self.cookiesByDomain.min { Self.oldestUse($0.value) < Self.oldestUse($1.value) }
            guard let oldest,
                let index = oldest.value.indices.min(by: { oldest.value[$0].isUsedBefore(oldest.value[$1]) })
            else { break }
            self.remove(at: index, of: oldest.key)
        }
    }

    private mutating func remove(at index: Int, of domain: String) {
        self.cookiesByDomain[domain]?.remove(at: index)
        self.count -= 1
        if self.cookiesByDomain[domain]?.isEmpty == true { self.cookiesByDomain[domain] = nil }
    }

    private static func leastWanted(_ shelf: [Cookie]) -> Int? {
        let open = shelf.indices.filter { !shelf[$0].isSecure }
        return (open.isEmpty ? Array(shelf.indices) : open).min { shelf[$0].isUsedBefore(shelf[$1]) }
    }

    private static func oldestUse(_ shelf: [Cookie]) -> HTTPDate {
        shelf.reduce(.latest) { min($0, $1.lastAccess) }
    }

    private static func ordered(_ cookies: [Cookie]) -> [Cookie] {
        // The sort is stable, so that among equals the earlier stored stays first.
        cookies.sorted {
            ($1.path.utf8.count, $0.creation) < ($0.path.utf8.count, $1.creation)
        }
    }

    /// The host and every domain that it lies below.
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
}

extension Cookie {
    fileprivate func isUsedBefore(_ other: Self) -> Bool { self.lastAccess < other.lastAccess }
}

extension CookieJar {
    /// Applies the rules of RFC 6265bis §5.7 in their order.
    func validated(_ set: SetCookie, from request: CookieRequest, now: HTTPDate) throws(CookieRefusal) -> Cookie {
        try Self.checkSyntax(set)
        let domain = try self.domain(of: set, from: request)
        let cookie = Cookie(
            name: set.name, value: set.value, domain: domain ?? request.host, isHostOnly: domain == nil,
            path: set.path ?? CookiePath.defaultPath(for: request.path),
            expires: set.expires.map { min($0, now.advanced(by: self.limits.lifetime)) }, isSecure: set.isSecure,
            isHTTPOnly: set.isHTTPOnly, sameSite: set.sameSite, creation: now)
        guard request.isForHTTP || !cookie.isHTTPOnly else { throw .nonHTTPAPI }
        try self.checkSecurity(cookie, from: request)
        try Self.checkSite(cookie, from: request)
        try Self.checkPrefix(cookie, pathWasNamed: set.path != nil)
        guard request.isForHTTP || !self.hides(cookie) else { throw .nonHTTPAPI }
        return cookie
    }

    private static func checkSyntax(_ set: SetCookie) throws(CookieRefusal) {
        let size = set.name.utf8.count + set.value.utf8.count
        let isBroken = { (byte: UInt8) in byte.isControl || byte == UInt8(ascii: ";") }
        guard size > 0, size <= SetCookieField.nameAndValueLimit, !set.name.utf8.contains(where: isBroken),
            !set.value.utf8.contains(where: isBroken), !set.name.utf8.contains(UInt8(ascii: "="))
        else { throw .malformed }
        guard set.path?.utf8.contains(where: isBroken) != true else { throw .malformed }
    }

    /// - Returns: `nil` for a cookie of its host alone.
    private func domain(of set: SetCookie, from request: CookieRequest) throws(CookieRefusal) -> String? {
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

    /// What comes in the clear may neither be secure nor hide a secure cookie from its own site.
    private func checkSecurity(_ cookie: Cookie, from request: CookieRequest) throws(CookieRefusal) {
        guard !request.isSecure else { return }
        guard !cookie.isSecure else { throw .insecureConnection }
        let isHidden = self.cookiesByDomain.contains { domain, shelf in
            guard
                CookieDomain.matches(domain, domain: cookie.domain)
                    || CookieDomain.matches(cookie.domain, domain: domain)
            else { return false }
            return shelf.contains {
                $0.isSecure && $0.name == cookie.name && CookiePath.matches(cookie.path, cookiePath: $0.path)
            }
        }
        guard !isHidden else { throw .insecureConnection }
    }

    private static func checkSite(_ cookie: Cookie, from request: CookieRequest) throws(CookieRefusal) {
        switch cookie.sameSite {
        case .none:
            guard cookie.isSecure else { throw .sameSiteNoneWithoutSecure }
        case .lax, .strict, .unspecified:
            guard request.isSameSite || request.isSafeNavigation else { throw .crossSite }
        }
    }

    private static func checkPrefix(_ cookie: Cookie, pathWasNamed: Bool) throws(CookieRefusal) {
        let bearer = cookie.name.isEmpty ? cookie.value : cookie.name
        let isSecureName = bearer.beginsIgnoringCase("__Secure-")
        let isHostName = bearer.beginsIgnoringCase("__Host-")
        guard isSecureName || isHostName else { return }
        // A cookie without a name must not be taken for one that has this name when it is sent back.
        guard !cookie.name.isEmpty, cookie.isSecure else { throw .invalidNamePrefix }
        guard !isHostName || cookie.isHostOnly && pathWasNamed && cookie.path == "/" else { throw .invalidNamePrefix }
    }

    /// Whether the cookie would take the place of one that is for HTTP alone.
    private func hides(_ cookie: Cookie) -> Bool {
        self.cookiesByDomain[cookie.domain]?.contains { $0.isHTTPOnly && cookie.identity == $0.identity } ?? false
    }
}

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
    package func matches(_ cookie: Cookie) -> Bool {
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

/// How much a jar holds. What is too much makes room by the order of RFC 6265bis §5.7.
package struct CookieLimits: Equatable, Sendable {
    /// Cookies of one domain; RFC 6265bis §6.1 asks for 50 at least.
    package var perDomain: Int
    /// Cookies in all; RFC 6265bis §6.1 asks for 3000 at least.
    package var total: Int
    /// Seconds that a cookie of a server may live; one that asks for more gets this (RFC 6265bis §5.5).
    package var lifetime: Int64

    /// - Parameters:
    ///   - perDomain: 180, as browsers have it; at least 1.
    ///   - total: 3300, as browsers have it; at least 1.
    ///   - lifetime: 400 days; at least 1 second.
    package init(perDomain: Int = 180, total: Int = 3300, lifetime: Int64 = 400 * 86_400) {
        self.perDomain = max(1, perDomain)
        self.total = max(1, total)
        self.lifetime = max(1, lifetime)
    }
}

/// Why a cookie was not kept (RFC 6265bis §5.7).
package enum CookieRefusal: Error, Equatable, Sendable {
    /// Its name and value are empty, too long, or hold what would break the field that sends them back.
    case malformed
    /// It is meant for a domain that belongs to the public.
    case publicSuffix
    /// It is meant for a domain that the host which sent it is no part of.
    case domainMismatch
    /// It is secure, or would take the place of a secure one, and came in the clear.
    case insecureConnection
    /// A script meddled with what is for HTTP alone.
    case nonHTTPAPI
    /// It came with an answer to another site's request and may not.
    case crossSite
    /// It is to go to all sites, and is not secure.
    case sameSiteNoneWithoutSecure
    /// Its name begins with `__Secure-` or `__Host-` and it is not what that promises.
    case invalidNamePrefix
}

/// Says which domains belong to the public, so that nobody may set cookies for them (RFC 6265bis §5.7, step 7).
///
/// The house carries no list of suffixes: who has one hands it in here.
package struct PublicSuffixRule: Sendable {
    /// Domains of one label, such as `com` and `localhost`, and nothing else.
    package static let singleLabels = PublicSuffixRule { !$0.utf8.contains(UInt8(ascii: ".")) }

    private let judge: @Sendable (String) -> Bool

    /// - Parameter judge: asked with a domain in canonical form, never with an address; must not block.
    package init(_ judge: @escaping @Sendable (String) -> Bool) {
        self.judge = judge
    }

    package func isPublicSuffix(_ domain: String) -> Bool {
        domain.isEmpty || !CookieDomain.isAddress(domain) && self.judge(domain)
    }
}
