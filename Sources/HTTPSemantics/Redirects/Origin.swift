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
