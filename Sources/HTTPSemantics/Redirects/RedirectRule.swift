import HTTPTypes

/// How a request goes on to where it was redirected (RFC 9110 §15.4), as URLSession does it.
package enum RedirectRule {
    /// Redirects of one task; the next is an error.
    package static let limit = 20

    /// Why a redirect is not followed.
    package enum Refusal: Equatable, Sendable {
        case tooMany
        /// Only the schemes of HTTP are followed; a WebSocket handshake stays one.
        case scheme
    }

    package enum Step: Equatable, Sendable {
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
    package static func next(
        status: Int, method: HTTPRequest.Method, fields: HTTPFields, from origin: Origin, to target: Origin, count: Int
    ) -> Step {
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
