import Foundation
import HTTPSemantics
import WireText

/// An immutable cookie.
open class HTTPCookie: NSObject, @unchecked Sendable {  // Not final; immutable.
    /// Which cookies of responses a storage accepts.
    public enum AcceptPolicy: UInt, Sendable {
        case always = 0
        case never = 1
        /// Those of the main document's site; all if no main document is set.
        case onlyFromMainDocumentDomain = 2
    }

    let attributes: CookieAttributes

    /// - Returns: `nil` if the name, the value or the path is missing, or both the domain and the origin URL.
    public init?(properties: [HTTPCookiePropertyKey: Any]) {
        guard let attributes = CookieAttributes(properties) else { return nil }
        self.attributes = attributes
        super.init()
    }

    init(_ attributes: CookieAttributes) {
        self.attributes = attributes
        super.init()
    }

    /// Properties that create an equal cookie.
    open var properties: [HTTPCookiePropertyKey: Any]? { self.attributes.properties }
    /// 0 for RFC 6265, 1 for RFC 2965.
    open var version: Int { self.attributes.version }
    open var name: String { self.attributes.name }
    open var value: String { self.attributes.value }
    /// `nil` for a session cookie.
    open var expiresDate: Date? { self.attributes.expires }
    open var isSessionOnly: Bool { self.attributes.expires == nil }
    /// With a leading dot it includes subdomains; otherwise the cookie is host-only.
    open var domain: String { self.attributes.domain }
    open var path: String { self.attributes.path }
    /// Whether it is sent over secure connections only.
    open var isSecure: Bool { self.attributes.isSecure }
    /// Whether it is hidden from scripts.
    open var isHTTPOnly: Bool { self.attributes.isHTTPOnly }
    open var comment: String? { self.attributes.comment }
    open var commentURL: URL? { self.attributes.commentURL }
    /// The ports that the cookie is sent to; `nil` for all.
    open var portList: [NSNumber]? { self.attributes.ports.map { $0.map { NSNumber(value: $0) } } }

    /// `nil` if unspecified, and for `SameSite=None`.
    open var sameSitePolicy: HTTPCookieStringPolicy? {
        switch self.attributes.sameSite {
        case .lax: .sameSiteLax
        case .strict: .sameSiteStrict
        case .none, .unspecified: nil
        }
    }

    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? HTTPCookie else { return false }
        return other === self || other.attributes == self.attributes
    }

    open override var hash: Int { self.attributes.hashValue }

    open override var description: String {
        let expiry = self.attributes.expires.map { "\($0)" } ?? "nil"
        return "<HTTPCookie version:\(self.version) name:\"\(self.name)\" value:\"\(self.value)\" "
            + "expiresDate:\(expiry) sessionOnly:\(self.isSessionOnly) domain:\"\(self.domain)\" "
            + "path:\"\(self.path)\" isSecure:\(self.isSecure)>"
    }

    // MARK: Header fields

    /// The `Cookie` field with the cookies in their order; empty without cookies.
    public class func requestHeaderFields(with cookies: [HTTPCookie]) -> [String: String] {
        CookieField.rendered(cookies.map { ($0.name, $0.value) }).map { ["Cookie": $0] } ?? [:]
    }

    /// The cookies in the `Set-Cookie` fields of a response from `URL`. Only the storage checks whether they may be stored.
    /// Cookies without a name are omitted.
    public class func cookies(withResponseHeaderFields headerFields: [String: String], for URL: URL) -> [HTTPCookie] {
        let fields = headerFields.filter { $0.key.matchesIgnoringCase("Set-Cookie") }
        return fields.sorted { $0.key < $1.key }.flatMap { SetCookieField.parseJoined($0.value) }.compactMap {
            self.cookie($0, from: URL, dialect: .foundation)
        }
    }

    /// The cookie of one `Set-Cookie` field of a response from `url`, not checked against the rules of storage.
    /// - Returns: `nil` for a cookie without a name or with an invalid domain, or a URL without a host.
    package class func cookie(
        _ field: SetCookieField, from url: URL, dialect: SetCookie.Dialect = .standard
    ) -> HTTPCookie? {
        guard !field.name.isEmpty, let host = url.host(percentEncoded: false), !host.isEmpty else { return nil }
        let now = Date()
        let set = SetCookie(field, dialect: dialect, now: HTTPDate(now))
        guard !set.isDomainInvalid else { return nil }
        // An address has no subdomains, so it gets no leading dot.
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

/// A key of the properties of a cookie.
public struct HTTPCookiePropertyKey: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(_ rawValue: String) { self.rawValue = rawValue }
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Text; required.
    public static let name = HTTPCookiePropertyKey("Name")
    /// Text; required.
    public static let value = HTTPCookiePropertyKey("Value")
    /// A `URL` or text; its host is the domain if there is no `domain`.
    public static let originURL = HTTPCookiePropertyKey("OriginURL")
    /// "0" or "1". Default: 0.
    public static let version = HTTPCookiePropertyKey("Version")
    /// Text; a leading dot includes subdomains.
    public static let domain = HTTPCookiePropertyKey("Domain")
    /// Text; required.
    public static let path = HTTPCookiePropertyKey("Path")
    /// Any value except `false` and empty text restricts the cookie to secure connections.
    public static let secure = HTTPCookiePropertyKey("Secure")
    /// A `Date`, or text with a date.
    public static let expires = HTTPCookiePropertyKey("Expires")
    /// Text.
    public static let comment = HTTPCookiePropertyKey("Comment")
    /// A `URL` or text.
    public static let commentURL = HTTPCookiePropertyKey("CommentURL")
    /// "TRUE" makes a session cookie.
    public static let discard = HTTPCookiePropertyKey("Discard")
    /// Seconds, as text or number; version 1 only.
    public static let maximumAge = HTTPCookiePropertyKey("Max-Age")
    /// Comma-separated numbers; version 0 uses only the first.
    public static let port = HTTPCookiePropertyKey("Port")
    /// "lax", "strict" or "none"; also as an `HTTPCookieStringPolicy`.
    public static let sameSitePolicy = HTTPCookiePropertyKey("SameSite")
    /// Whether a script created the cookie. Without effect.
    public static let setByJavaScript = HTTPCookiePropertyKey("SetInJavaScript")

    fileprivate static let httpOnly = HTTPCookiePropertyKey("HttpOnly")
    fileprivate static let created = HTTPCookiePropertyKey("Created")
}

/// With which cross-site requests a cookie is sent (RFC 6265bis §5.6.7).
public struct HTTPCookieStringPolicy: RawRepresentable, Hashable, Sendable {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }

    /// With top-level navigations only.
    public static let sameSiteLax = HTTPCookieStringPolicy(rawValue: "lax")
    /// Never.
    public static let sameSiteStrict = HTTPCookieStringPolicy(rawValue: "strict")
}

/// The values of a cookie.
struct CookieAttributes: Hashable, Sendable {
    var version = 0
    var name: String
    var value: String
    /// In lower case; a leading dot includes subdomains.
    var domain: String
    var path: String
    /// Whether the server sent no Path, and the default path of the request is used.
    var hasStandardPath = false
    /// `nil` for a session cookie.
    var expires: Date?
    var isSecure = false
    var isHTTPOnly = false
    var sameSite = SameSite.unspecified
    var comment: String?
    var commentURL: URL?
    var ports: [Int]?
    var created = Date()

    /// Ignores `created`.
    static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.identity == rhs.identity && lhs.value == rhs.value && lhs.expires == rhs.expires
            && lhs.isSecure == rhs.isSecure && lhs.isHTTPOnly == rhs.isHTTPOnly && lhs.sameSite == rhs.sameSite
            && lhs.version == rhs.version && lhs.comment == rhs.comment && lhs.commentURL == rhs.commentURL
            && lhs.ports == rhs.ports
    }

    func hash(into hasher: inout Hasher) { hasher.combine(self.identity) }

    var isHostOnly: Bool { !self.domain.hasPrefix(".") }

    var identity: Cookie.Identity { self.storedCookie.identity }

    /// The cookie for `CookieJar.insert`.
    var storedCookie: Cookie {
        Cookie(
            name: self.name, value: self.value, domain: self.domain, isHostOnly: self.isHostOnly, path: self.path,
            expires: self.expires.map(HTTPDate.init), isSecure: self.isSecure, isHTTPOnly: self.isHTTPOnly,
            sameSite: self.sameSite, creation: HTTPDate(self.created))
    }

    /// The cookie for `CookieJar.store`, as if received from a server.
    var receivedCookie: SetCookie {
        SetCookie(
            name: self.name, value: self.value, domain: self.isHostOnly ? nil : self.domain,
            path: self.hasStandardPath ? nil : self.path, expires: self.expires.map(HTTPDate.init),
            isSecure: self.isSecure, isHTTPOnly: self.isHTTPOnly,
            sameSite: self.sameSite)
    }
}

extension HTTPDate {
    /// Rounded down to the second, and clamped to the range of `HTTPDate`.
    package init(_ date: Date) {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        self.init(seconds: Int64(exactly: seconds) ?? (seconds < 0 ? .min : .max))
    }

    var date: Date { Date(timeIntervalSince1970: TimeInterval(self.seconds)) }
}

extension CookieAttributes {
    typealias Properties = [HTTPCookiePropertyKey: Any]

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
        let named = self.text(properties[.domain])?.loweredASCII
        return named ?? self.url(properties[.originURL])?.host(percentEncoded: false)?.loweredASCII
    }

    private static func expiry(_ properties: Properties, version: Int) -> Date? {
        if self.text(properties[.discard])?.matchesIgnoringCase("TRUE") == true { return nil }
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
