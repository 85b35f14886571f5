import HTTPTypes
import WireText

/// How a redirected request is changed (RFC 9110 §15.4), as URLSession does it.
package enum RedirectPolicy {
    /// Most redirects of one task.
    package static let limit = 20

    /// Why a redirect is not followed.
    package enum Refusal: Equatable, Sendable {
        case tooMany
        /// The target is an HTTP URL without a host.
        case noHost
    }

    package enum Decision: Equatable, Sendable {
        case follow(RedirectedRequest)
        case refuse(Refusal)
    }

    /// 305 and 306, deprecated by RFC 9110, are followed like 307, as Foundation's own tests expect; they do not change
    /// the proxy.
    fileprivate static func isRedirect(_ status: Int) -> Bool {
        [301, 302, 303, 305, 306, 307, 308].contains(status)
    }

    /// A target of another scheme than HTTP's is followed as well: whether it can be loaded is the caller's decision.
    /// - Parameters:
    ///   - fields: of the request, as the program set them.
    ///   - count: number of redirects already followed.
    package static func decide(
        status: Int, method: HTTPRequest.Method, fields: HTTPFields, from origin: Origin, to target: Origin, count: Int
    ) -> Decision {
        guard count < self.limit else { return .refuse(.tooMany) }
        guard !target.isHTTP || !target.host.isEmpty else { return .refuse(.noHost) }
        let newMethod = self.method(after: status, method)
        let keepsContent = newMethod == method
        var kept = fields
        if !keepsContent { self.removeContent(from: &kept) }
        self.removeSecrets(from: &kept, origin: origin, target: target)
        return .follow(RedirectedRequest(method: newMethod, fields: kept, keepsContent: keepsContent))
    }

    /// A 303 changes every method to GET, HEAD included; 301 and 302 change POST to GET, as all clients do.
    static func method(after status: Int, _ method: HTTPRequest.Method) -> HTTPRequest.Method {
        switch status {
        case 303: .get
        case 301, 302: method == .post ? .get : method
        default: method
        }
    }

    /// The fields of a request without content that goes to `target`, made from those of a request with content.
    package static func fieldsWithoutContent(
        _ fields: HTTPFields, from origin: Origin, to target: Origin
    ) -> HTTPFields {
        var kept = fields
        self.removeContent(from: &kept)
        self.removeSecrets(from: &kept, origin: origin, target: target)
        return kept
    }

    private static func removeContent(from fields: inout HTTPFields) {
        let contentFields: Set<HTTPField.Name> = [
            .contentType, .contentLength, .contentEncoding, .contentLanguage, .contentLocation, .contentDisposition,
            .contentRange, .contentDigest, .contentMD5, .digest, .lastModified, .transferEncoding, .trailer, .expect,
        ]
        fields.removeAll { contentFields.contains($0.name) }
    }

    /// Removes credentials and cookies if the origin changes.
    private static func removeSecrets(from fields: inout HTTPFields, origin: Origin, target: Origin) {
        guard !Self.isSameOrigin(origin, target) else { return }
        let secrets: Set<HTTPField.Name> = [.authorization, .proxyAuthorization, .cookie, .hostName]
        fields.removeAll { secrets.contains($0.name) }
        // A secure URL must not be sent unencrypted (RFC 9110 §10.1.3).
        if origin.isSecure, !target.isSecure { fields.removeAll { $0.name == .referer } }
    }

    /// Unlike `==`, treats `ws` like `http` and `wss` like `https`.
    package static func isSameOrigin(_ one: Origin, _ other: Origin) -> Bool {
        one.host == other.host && one.port == other.port && one.isSecure == other.isSecure
    }
}

/// The `Location` of a redirect response (RFC 9110 §15.4, §10.2.2).
package enum RedirectLocation: Equatable, Sendable {
    /// Not a redirect: the status is none, or there is no `Location`.
    case none
    /// A reference to resolve against the request's URL.
    case reference(String)
    /// Several different `Location` fields, of which one may be injected, or one that is too long.
    case malformed

    /// Longest reference in bytes.
    package static let limit = 65_536

    /// 300 and 304 are not redirects, even with a `Location`.
    package init(status: Int, fields: HTTPFields) {
        guard RedirectPolicy.isRedirect(status) else {
            self = .none
            return
        }
        let lines = fields[values: .location].map(\.trimmingBlanks)
        guard let line = lines.first, !line.isEmpty else {
            self = .none
            return
        }
        // By bytes: strings are compared in a normal form, which takes long to find for many combining characters.
        guard lines.allSatisfy({ $0.utf8.elementsEqual(line.utf8) }), line.utf8.count <= Self.limit else {
            self = .malformed
            return
        }
        // Many servers do not percent-encode. Existing escapes are kept.
        self = .reference(PercentCoding.encoded(line, allowing: Self.isAllowed))
    }

    /// `reference` with the fragment of the request's URL if it has none (RFC 9110 §10.2.2).
    package static func inheritingFragment(_ reference: String, from fragment: String?) -> String {
        guard let fragment, !reference.utf8.contains(UInt8(ascii: "#")) else { return reference }
        return reference + "#" + fragment
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"\"<>\\^`{|}".utf8.contains(byte)
    }
}

/// The request that follows a redirect.
package struct RedirectedRequest: Equatable, Sendable {
    package let method: HTTPRequest.Method
    /// Without fields that must not be forwarded. The loader adds cookies and Host for the target.
    package let fields: HTTPFields
    /// Whether the content is sent again; a body stream must then be requested again.
    package let keepsContent: Bool
}

/// Scheme, host and port (RFC 9110 §4.3.1).
package struct Origin: Hashable, Sendable {
    /// In lower case.
    package let scheme: String
    /// In lower case; an IPv6 address without brackets.
    package let host: String
    /// Defaults to that of the scheme; 0 for a scheme without one.
    package let port: Int

    package init(scheme: String, host: String, port: Int? = nil) {
        self.scheme = scheme.loweredASCII
        self.host = CookieDomain.canonical(host)
        self.port = port ?? Self.standardPort(of: self.scheme)
    }

    package var isSecure: Bool { self.scheme == "https" || self.scheme == "wss" }

    /// Includes `ws` and `wss`: an opening handshake is an HTTP request.
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
