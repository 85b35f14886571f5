import HTTPTypes

/// How a request goes on to where it was redirected (RFC 9110 §15.4), as URLSession does it.
package enum RedirectPolicy {
    /// Redirects of one task; the next is an error.
    package static let limit = 20

    /// Why a redirect is not followed.
    package enum Refusal: Equatable, Sendable {
        case tooMany
        /// Only the schemes of HTTP are followed; a WebSocket handshake stays one.
        case scheme
    }

    package enum Decision: Equatable, Sendable {
        case follow(RedirectedRequest)
        case refuse(Refusal)
    }

    /// 305 and 306, which RFC 9110 has retired, are followed like 307, as Foundation's own tests expect: nobody is made
    /// a proxy by that.
    package static func isRedirect(_ status: Int) -> Bool {
        [301, 302, 303, 305, 306, 307, 308].contains(status)
    }

    /// - Parameters:
    ///   - count: redirects that were followed before this one.
    ///   - fields: of the request, as the program set them.
    package static func decide(
        status: Int, method: HTTPRequest.Method, fields: HTTPFields, from origin: Origin, to target: Origin, count: Int
    ) -> Decision {
        guard count < self.limit else { return .refuse(.tooMany) }
        guard target.isHTTP, !target.host.isEmpty else { return .refuse(.scheme) }
        let newMethod = self.method(after: status, method)
        let keepsContent = newMethod == method
        var kept = fields
        if !keepsContent { self.removeContent(from: &kept) }
        self.removeSecrets(from: &kept, origin: origin, target: target)
        return .follow(RedirectedRequest(method: newMethod, fields: kept, keepsContent: keepsContent))
    }

    /// 303 asks for the answer by GET, of a HEAD too; a POST becomes a GET by 301 and 302 as well, as every client has
    /// done it.
    static func method(after status: Int, _ method: HTTPRequest.Method) -> HTTPRequest.Method {
        switch status {
        case 303: .get
        case 301, 302: method == .post ? .get : method
        default: method
        }
    }

    private static func removeContent(from fields: inout HTTPFields) {
        let about: Set<HTTPField.Name> = [
            .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentDisposition,
            .contentRange, .contentDigest, .contentMD5, .digest, .lastModified, .transferEncoding, .trailer, .expect,
        ]
        fields.removeAll { about.contains($0.name) }
    }

    /// What one origin was trusted with, another does not get to see.
    private static func removeSecrets(from fields: inout HTTPFields, origin: Origin, target: Origin) {
        guard !Self.isSameOrigin(origin, target) else { return }
        let secrets: Set<HTTPField.Name> = [.authorization, .proxyAuthorization, .cookie, .hostName]
        fields.removeAll { secrets.contains($0.name) }
        // A secure address is not told to who listens on the way (RFC 9110 §10.1.3).
        if origin.isSecure, !target.isSecure { fields.removeAll { $0.name == .referer } }
    }

    /// `ws://host` and `http://host` are one place.
    package static func isSameOrigin(_ one: Origin, _ other: Origin) -> Bool {
        one.host == other.host && one.port == other.port && one.isSecure == other.isSecure
    }
}

/// Where a response sends its request (RFC 9110 §15.4, §10.2.2).
package enum RedirectLocation: Equatable, Sendable {
    /// The response is itself the result: its status redirects nothing, or it does not say where to.
    case none
    /// A reference to be resolved against the request's URL.
    case reference(String)
    /// There are several places, or what is there is no reference: whoever added the second is not to be followed.
    case malformed

    /// Longer references are not followed.
    package static let limit = 65_536

    /// 300 and 304 are results, whatever they name.
    package init(status: Int, fields: HTTPFields) {
        guard RedirectPolicy.isRedirect(status) else {
            self = .none
            return
        }
        let lines = Set(fields[values: .location].map(\.trimmingBlanks))
        guard let line = lines.first, !line.isEmpty else {
            self = .none
            return
        }
        guard lines.count == 1, line.utf8.count <= Self.limit else {
            self = .malformed
            return
        }
        // Servers write names as people do: what no reference may hold is encoded, what is encoded stays.
        self = .reference(PercentCoding.encoded(line, allowing: Self.isAllowed))
    }

    /// `reference` with the fragment of the request's URL, where it has none of its own (RFC 9110 §10.2.2).
    package static func inheritingFragment(_ reference: String, from fragment: String?) -> String {
        guard let fragment, !reference.utf8.contains(UInt8(ascii: "#")) else { return reference }
        return reference + "#" + fragment
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"\"<>\\^`{|}".utf8.contains(byte)
    }
}

/// What is left of a request when it goes on to where it was redirected.
package struct RedirectedRequest: Equatable, Sendable {
    package let method: HTTPRequest.Method
    /// Without those that may not go along. Cookies and the host are put in anew for the target.
    package let fields: HTTPFields
    /// Whether the content goes along: a stream must then be asked for again.
    package let keepsContent: Bool
}

/// Scheme, host and port: what two addresses must share for one to be trusted with the other's secrets
/// (RFC 9110 §4.3.1).
package struct Origin: Hashable, Sendable {
    /// In lower case.
    package let scheme: String
    /// In lower case, an IPv6 address without its brackets.
    package let host: String
    /// That of the scheme where none was named; 0 where the scheme has none.
    package let port: Int

    package init(scheme: String, host: String, port: Int? = nil) {
        self.scheme = scheme.loweredASCII
        self.host = CookieDomain.canonical(host)
        self.port = port ?? Self.standardPort(of: self.scheme)
    }

    package var isSecure: Bool { self.scheme == "https" || self.scheme == "wss" }

    /// `ws` stands for `http` here and `wss` for `https`: a handshake is a request like any other.
    package var isHTTP: Bool { ["http", "https", "ws", "wss"].contains(self.scheme) }

    private static func standardPort(of scheme: String) -> Int {
        switch scheme {
        case "http", "ws": 80
        case "https", "wss": 443
        case "ftp": 21
        default: 0
        }
    }
}
