import HTTPTypes

extension HTTPField.Name {
    /// Names that the package of HTTP types has no constant for. All are tokens.
    static let pragma = Self.known("Pragma")
    static let keepAlive = Self.known("Keep-Alive")
    static let proxyConnection = Self.known("Proxy-Connection")
    static let contentDigest = Self.known("Content-Digest")
    static let digest = Self.known("Digest")
    static let hostName = Self.known("Host")
    static let contentMD5 = Self.known("Content-MD5")

    private static func known(_ name: String) -> Self {
        Self(name) ?? .via
    }
}
