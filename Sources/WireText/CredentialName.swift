/// Tells by their names which header fields and query parameters hold credentials, so that their values are not shown.
package enum CredentialName {
    /// Shown instead of such a value.
    package static let hiddenValue = "(hidden)"

    private static let endings = [
        "authorization", "cookie", "cookie2", "token", "key", "secret", "password", "signature",
    ]

    /// Whether a header field or query parameter of this name holds a credential: `Authorization`, `Set-Cookie`,
    /// `X-API-Key`, `access_token` and every other name that ends as one of these, in any case of letters.
    package static func matches(_ name: some StringProtocol) -> Bool {
        let name = name.lowercased()
        return self.endings.contains { name.hasSuffix($0) }
    }

    /// The target of a request, without the values of such parameters in its query.
    package static func hidingCredentials(inTarget target: String) -> String {
        guard let mark = target.firstIndex(of: "?") else { return target }
        let pairs = target[target.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
        let shown = pairs.map { pair in
            guard let equals = pair.firstIndex(of: "=") else { return String(pair) }
            let name = PercentCoding.decodedText(pair[..<equals]) ?? String(pair[..<equals])
            guard self.matches(name) else { return String(pair) }
            return "\(pair[...equals])\(self.hiddenValue)"
        }
        return "\(target[...mark])\(shown.joined(separator: "&"))"
    }
}
