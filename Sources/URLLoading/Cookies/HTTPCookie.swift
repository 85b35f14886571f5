import Foundation
import HTTPSemantics

/// A cookie. It does not change once made.
open class HTTPCookie: NSObject, @unchecked Sendable {
    let facts: CookieFacts

    /// - Returns: `nil` when the name, the value or the path is missing, or both the domain and the origin URL.
    public init?(properties: [HTTPCookiePropertyKey: Any]) {
        guard let facts = CookieFacts(properties) else { return nil }
        self.facts = facts
        super.init()
    }

    init(_ facts: CookieFacts) {
        self.facts = facts
        super.init()
    }

    /// What makes the same cookie again.
    open var properties: [HTTPCookiePropertyKey: Any]? { self.facts.properties }
    /// 0 for the cookies of today, 1 for those of RFC 2965.
    open var version: Int { self.facts.version }
    open var name: String { self.facts.name }
    open var value: String { self.facts.value }
    /// When it ends; `nil` for a cookie of the session.
    open var expiresDate: Date? { self.facts.expires }
    /// Whether it ends with the session.
    open var isSessionOnly: Bool { self.facts.expires == nil }
    /// With a dot before it the cookie is for the hosts below too, else for this host alone.
    open var domain: String { self.facts.domain }
    open var path: String { self.facts.path }
    /// Whether it goes over secure connections alone.
    open var isSecure: Bool { self.facts.isSecure }
    /// Whether scripts may not see it.
    open var isHTTPOnly: Bool { self.facts.isHTTPOnly }
    open var comment: String? { self.facts.comment }
    open var commentURL: URL? { self.facts.commentURL }
    /// The ports that it is for; `nil` for all.
    open var portList: [NSNumber]? { self.facts.ports.map { $0.map { NSNumber(value: $0) } } }

    /// `nil` where the server did not say, and for cookies that go along with all requests.
    open var sameSitePolicy: HTTPCookieStringPolicy? {
        switch self.facts.sameSite {
        case .lax: .sameSiteLax
        case .strict: .sameSiteStrict
        case .none, .unspecified: nil
        }
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPCookie else { return false }
        return other === self || other.facts == self.facts
    }

    open override var hash: Int { self.facts.hashValue }

    open override var description: String {
        let expiry = self.facts.expires.map { "\($0)" } ?? "nil"
        return "<HTTPCookie version:\(self.version) name:\"\(self.name)\" value:\"\(self.value)\" "
            + "expiresDate:\(expiry) sessionOnly:\(self.isSessionOnly) domain:\"\(self.domain)\" "
            + "path:\"\(self.path)\" isSecure:\(self.isSecure)>"
    }
}

extension HTTPCookie {
    /// The fields that send the cookies back, in their order: `Cookie`, or none where there are no cookies.
    public class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
        CookieField.rendered(cookies.map { ($0.name, $0.value) }).map { ["Cookie": $0] } ?? [:]
    }

    /// The cookies of an answer from `URL`, read from `Set-Cookie` and judged by nothing: whether they may be kept is
    /// for the storage to say. Those without a name are left out.
    public class func cookies(withResponseHeaderFields headerFields: [String: String], for URL: URL) -> [HTTPCookie] {
        let fields = headerFields.filter { $0.key.isSameFieldName(as: "Set-Cookie") }
        return fields.sorted { $0.key < $1.key }.flatMap { SetCookieField.joined($0.value) }.compactMap {
            self.cookie($0, from: URL, dialect: .foundation)
        }
    }

    /// The cookie of one field of an answer from `url`, judged by nothing.
    /// - Returns: `nil` for a field without a name, and for a URL without a host.
    package class func cookie(
        _ field: SetCookieField, from url: URL, dialect: SetCookie.Dialect = .standard
    ) -> HTTPCookie? {
        guard !field.name.isEmpty, let host = url.host(percentEncoded: false), !host.isEmpty else { return nil }
        let now = Date()
        let set = SetCookie(field, dialect: dialect, now: HTTPDate(now))
        // Nothing lies below an address: the dot would say otherwise.
        let domain = set.domain.map { CookieDomain.isAddress($0) ? $0 : ".\($0)" }
        return HTTPCookie(
            CookieFacts(
                name: set.name, value: set.value, domain: domain ?? CookieDomain.canonical(host),
                path: set.path ?? CookiePath.standard(for: url.path(percentEncoded: true)),
                hasStandardPath: set.path == nil, expires: set.expires?.date, isSecure: set.isSecure,
                isHTTPOnly: set.isHTTPOnly,
                sameSite: set.sameSite, comment: field.attribute("Comment")?.value,
                commentURL: field.attribute("CommentURL")?.value.flatMap { Foundation.URL(string: $0) }, created: now))
    }
}
