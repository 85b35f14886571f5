/// What a server asks to be kept: a `Set-Cookie` field understood, its attributes judged one by one
/// (RFC 6265bis §5.6.1 to §5.6.7). Whether it is kept is for the jar to say.
package struct SetCookie: Equatable, Sendable {
    /// How attributes are read where readers differ.
    package enum Dialect: Sendable {
        /// As RFC 6265bis says: `Secure` and `HttpOnly` count whatever value they have.
        case standard
        /// As Foundation reads fields in a dictionary: flags count only without a value, `Discard` makes a cookie
        /// one of the session.
        case foundation
    }

    package var name: String
    package var value: String
    /// Lower case and without a leading dot; `nil` where the cookie is for its host alone.
    package var domain: String?
    /// `nil` where the default path is to be used.
    package var path: String?
    /// When it ends; `nil` with the session.
    package var expires: HTTPDate?
    package var isSecure: Bool
    package var isHTTPOnly: Bool
    package var sameSite: SameSite

    /// - Parameters:
    ///   - expires: `nil` for a cookie of the session.
    package init(
        name: String, value: String, domain: String? = nil, path: String? = nil, expires: HTTPDate? = nil,
        isSecure: Bool = false, isHTTPOnly: Bool = false, sameSite: SameSite = .unspecified
    ) {
        self.name = name
        self.value = value
        self.domain = domain.map(CookieDomain.canonical)
        self.path = path
        self.expires = expires
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
    }

    /// - Parameter now: what Max-Age counts from.
    package init(_ field: SetCookieField, dialect: Dialect = .standard, now: HTTPDate) {
        let flag = { (name: String) -> Bool in
            switch dialect {
            case .standard: field.attribute(name) != nil
            case .foundation: field.attributes.contains { $0.value == nil && $0.name.matchesIgnoringCase(name) }
            }
        }
        let domain = field.attribute("Domain")?.value.map(CookieDomain.canonical) ?? ""
        let path = field.attribute("Path")?.value ?? ""
        self.init(
            name: field.name, value: field.value, domain: domain.isEmpty ? nil : domain,
            path: path.utf8.first == UInt8(ascii: "/") ? path : nil, expires: Self.expiry(field, now: now),
            isSecure: flag("Secure"), isHTTPOnly: flag("HttpOnly"),
            sameSite: SameSite(attribute: field.attribute("SameSite")?.value))
        if dialect == .foundation, flag("Discard") { self.expires = nil }
    }

    /// Max-Age goes before Expires; of each, the last that can be understood counts.
    private static func expiry(_ field: SetCookieField, now: HTTPDate) -> HTTPDate? {
        var byAge: HTTPDate?
        var byDate: HTTPDate?
        for attribute in field.attributes {
            guard let value = attribute.value else { continue }
            if attribute.name.matchesIgnoringCase("Max-Age") {
                byAge = self.maximumAge(value).map { $0 <= 0 ? .earliest : now.advanced(by: $0) } ?? byAge
            } else if attribute.name.matchesIgnoringCase("Expires") {
                byDate = CookieDate.parse(value) ?? byDate
            }
        }
        return byAge ?? byDate
    }

    private static func maximumAge(_ value: String) -> Int64? {
        let isNegative = value.utf8.first == UInt8(ascii: "-")
        guard let age = value.dropFirst(isNegative ? 1 : 0).clampedDecimal(limit: Int64(UInt32.max)) else { return nil }
        return isNegative ? -age : age
    }
}
