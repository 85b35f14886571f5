import Foundation
import HTTPSemantics

/// A cookie. It does not change once made.
open class HTTPCookie: NSObject, @unchecked Sendable {
    let facts: CookieAttributes

    /// - Returns: `nil` when the name, the value or the path is missing, or both the domain and the origin URL.
    public init?(properties: [HTTPCookiePropertyKey: Any]) {
        guard let facts = CookieAttributes(properties) else { return nil }
        self.facts = facts
        super.init()
    }

    init(_ facts: CookieAttributes) {
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
        return fields.sorted { $0.key < $1.key }.flatMap { SetCookieField.parseJoined($0.value) }.compactMap {
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
            CookieAttributes(
                name: set.name, value: set.value, domain: domain ?? CookieDomain.canonical(host),
                path: set.path ?? CookiePath.defaultPath(for: url.path(percentEncoded: true)),
                hasStandardPath: set.path == nil, expires: set.expires?.date, isSecure: set.isSecure,
                isHTTPOnly: set.isHTTPOnly,
                sameSite: set.sameSite, comment: field.attribute("Comment")?.value,
                commentURL: field.attribute("CommentURL")?.value.flatMap { Foundation.URL(string: $0) }, created: now))
    }
}

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

/// With which requests of other sites a cookie goes along (RFC 6265bis §5.6.7).
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// With those alone that bring the user to the site.
    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    /// With none.
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}

extension HTTPCookie {
    /// Whose cookies a storage takes from answers.
    public enum AcceptPolicy: UInt, Sendable {
        case always = 0
        case never = 1
        /// Those of the site that the main document is of. Where no document is named, every answer is of its own site.
        case onlyFromMainDocumentDomain = 2
    }
}

/// What a cookie consists of.
struct CookieAttributes: Hashable, Sendable {
    var version = 0
    var name: String
    var value: String
    /// In lower case; begins with a dot where the hosts below are meant too.
    var domain: String
    var path: String
    /// Whether the server named no path, and the request's own was taken.
    var hasStandardPath = false
    /// `nil` ends with the session.
    var expires: Date?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite = SameSite.unspecified
    var comment: String?
    var commentURL: URL?
    var ports: [Int]?
    var created = Date()

    /// Equal cookies may have been made at different moments.
    static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.identity == rhs.identity && lhs.value == rhs.value && lhs.expires == rhs.expires
            && lhs.isSecure == rhs.isSecure && lhs.isHTTPOnly == rhs.isHTTPOnly && lhs.sameSite == rhs.sameSite
            && lhs.version == rhs.version && lhs.comment == rhs.comment && lhs.commentURL == rhs.commentURL
            && lhs.ports == rhs.ports
    }

    func hash(into hasher: inout Hasher) { hasher.combine(self.identity) }

    var isHostOnly: Bool { !self.domain.hasPrefix(".") }

    var identity: Cookie.Identity { self.kept.identity }

    /// As the jar keeps it.
    var kept: Cookie {
        Cookie(
            name: self.name, value: self.value, domain: self.domain, isHostOnly: self.isHostOnly, path: self.path,
            expires: self.expires.map(HTTPDate.init), isSecure: self.isSecure, isHTTPOnly: self.isHTTPOnly,
            sameSite: self.sameSite, creation: HTTPDate(self.created))
    }

    /// As a server may have sent it.
    var sent: SetCookie {
        SetCookie(
            name: self.name, value: self.value, domain: self.isHostOnly ? nil : self.domain,
            path: self.hasStandardPath ? nil : self.path, expires: self.expires.map(HTTPDate.init),
            isSecure: self.isSecure, isHTTPOnly: self.isHTTPOnly,
            sameSite: self.sameSite)
    }
}

extension HTTPDate {
    /// Rounded down to the second; what is out of range becomes the first or the last moment of it.
    init(_ date: Date) {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        self.init(seconds: Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max))
    }

    var date: Date { Date(timeIntervalSince1970: TimeInterval(self.seconds)) }
}

extension CookieAttributes {
    typealias Properties = [HTTPCookiePropertyKey: Any]

    /// - Returns: `nil` when the name, the value or the path is missing, or both the domain and the origin.
    init?(_ properties: Properties) {
        guard let name = Self.text(properties[.name]), !name.isEmpty, let value = Self.text(properties[.value]),
            let path = Self.text(properties[.path]), let domain = Self.domain(properties)
        else { return nil }
        self.init(name: name, value: value, domain: domain, path: path)
        self.version = Self.text(properties[.version]) == "1" ? 1 : 0
        self.expires = Self.expiry(properties, version: self.version)
        self.isSecure = Self.flag(properties[.secure])
        self.isHTTPOnly = Self.flag(properties[.httpOnly])
        self.sameSite = SameSite(attribute: Self.text(properties[.sameSitePolicy]))
        self.comment = Self.text(properties[.comment])
        self.commentURL = Self.url(properties[.commentURL])
        self.ports = Self.ports(properties[.port], version: self.version)
        self.created = properties[.created] as? Date ?? Date()
    }

    /// What makes the same cookie again.
    var properties: Properties {
        var properties: Properties = [
            .name: self.name, .value: self.value, .domain: self.domain, .path: self.path,
            .version: String(self.version), .created: self.created,
        ]
        properties[.expires] = self.expires
        if self.expires == nil { properties[.discard] = "TRUE" }
        if self.isSecure { properties[.secure] = "TRUE" }
        if self.isHTTPOnly { properties[.httpOnly] = "TRUE" }
        if self.sameSite != .unspecified { properties[.sameSitePolicy] = self.sameSite.rawValue }
        properties[.comment] = self.comment
        properties[.commentURL] = self.commentURL
        properties[.port] = self.ports.map { $0.map(String.init).joined(separator: ",") }
        return properties
    }

    private static func text(_ value: Any?) -> String? {
        switch value {
        case let text as any StringProtocol: String(text)
        case let policy as HTTPCookieStringPolicy: policy.rawValue
        case let number as any BinaryInteger: "\(number)"
        case let number as NSNumber: number.stringValue
        case let text as NSString: "\(text)"
        default: nil
        }
    }

    private static func url(_ value: Any?) -> URL? {
        value as? URL ?? self.text(value).flatMap { URL(string: $0) }
    }

    private static func flag(_ value: Any?) -> Bool {
        if let flag = value as? Bool { return flag }
        return self.text(value).map { !$0.isEmpty } ?? false
    }

    private static func domain(_ properties: Properties) -> String? {
        let named = self.text(properties[.domain])?.withLoweredLetters
        return named ?? self.url(properties[.originURL])?.host(percentEncoded: false)?.withLoweredLetters
    }

    private static func expiry(_ properties: Properties, version: Int) -> Date? {
        if self.text(properties[.discard])?.isSameFieldName(as: "TRUE") == true { return nil }
        if version == 1 {
            return self.text(properties[.maximumAge]).flatMap { Int64($0) }.map {
                HTTPDate(Date()).advanced(by: $0).date
            }
        }
        if let date = properties[.expires] as? Date { return date }
        return self.text(properties[.expires]).flatMap { CookieDate.parse($0) }?.date
    }

    private static func ports(_ value: Any?, version: Int) -> [Int]? {
        let ports = self.text(value)?.split(separator: ",").compactMap { piece in
            UInt16(piece.filter { $0 != " " }).map { Int($0) }
        }
        guard let ports, !ports.isEmpty else { return nil }
        return version == 0 ? Array(ports.prefix(1)) : ports
    }
}
