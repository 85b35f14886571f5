/// A request without its body (RFC 9112 §3).
public struct RequestHead: Equatable, Sendable {
    /// As it was written; methods are compared exactly.
    public let method: String
    /// What stands between the method and the version: visible ASCII characters, at least one.
    public let target: String
    public let version: HTTPVersion
    public let fields: HTTPFields

    public init(method: String, target: String, version: HTTPVersion = .http11, fields: HTTPFields = HTTPFields()) {
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
    }
}
