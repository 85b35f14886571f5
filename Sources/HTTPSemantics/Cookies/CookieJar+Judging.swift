extension CookieJar {
    /// Applies the rules of RFC 6265bis §5.7 in their order.
    func judged(_ set: SetCookie, from request: CookieRequest, now: HTTPDate) throws(CookieRefusal) -> Cookie {
        try Self.checkSyntax(set)
        let domain = try self.domain(of: set, from: request)
        let cookie = Cookie(
            name: set.name, value: set.value, domain: domain ?? request.host, isHostOnly: domain == nil,
            path: set.path ?? CookiePath.standard(for: request.path),
            expires: set.expires.map { min($0, now.advanced(by: self.limits.lifetime)) }, isSecure: set.isSecure,
            isHTTPOnly: set.isHTTPOnly, sameSite: set.sameSite, creation: now)
        guard request.isForHTTP || !cookie.isHTTPOnly else { throw .notForHTTP }
        try self.checkSecurity(cookie, from: request)
        try Self.checkSite(cookie, from: request)
        try Self.checkPrefix(cookie, pathWasNamed: set.path != nil)
        guard request.isForHTTP || !self.hides(cookie) else { throw .notForHTTP }
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
            guard domain == request.host else { throw .foreignDomain }
            return nil
        }
        if self.suffixes.isPublicSuffix(domain) {
            guard domain == request.host else { throw .publicSuffix }
            return nil
        }
        guard CookieDomain.matches(request.host, domain: domain) else { throw .foreignDomain }
        return domain
    }

    /// What comes in the clear may neither be secure nor hide a secure cookie from its own site.
    private func checkSecurity(_ cookie: Cookie, from request: CookieRequest) throws(CookieRefusal) {
        guard !request.isSecure else { return }
        guard !cookie.isSecure else { throw .insecureConnection }
        let isHidden = self.shelves.contains { domain, shelf in
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
        guard !cookie.name.isEmpty, cookie.isSecure else { throw .brokenPrefix }
        guard !isHostName || cookie.isHostOnly && pathWasNamed && cookie.path == "/" else { throw .brokenPrefix }
    }

    /// Whether the cookie would take the place of one that is for HTTP alone.
    private func hides(_ cookie: Cookie) -> Bool {
        self.shelves[cookie.domain]?.contains { $0.isHTTPOnly && cookie.identity == $0.identity } ?? false
    }
}
