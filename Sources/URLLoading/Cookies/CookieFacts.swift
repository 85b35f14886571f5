import Foundation
import HTTPSemantics

/// What a cookie consists of.
struct CookieFacts: Hashable, Sendable {
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
