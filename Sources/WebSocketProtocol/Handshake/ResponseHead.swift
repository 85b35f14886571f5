/// A response without its body (RFC 9112 §4).
public struct ResponseHead: Equatable, Sendable {
    public let version: HTTPVersion
    /// 100 to 999.
    public let status: Int
    /// The text behind the status; often empty, and of no consequence.
    public let reason: String
    public let fields: HTTPFields

    public init(version: HTTPVersion = .http11, status: Int, reason: String = "", fields: HTTPFields = HTTPFields()) {
        self.version = version
        self.status = status
        self.reason = reason
        self.fields = fields
    }

    /// Whether another head follows this one: every 1xx but 101, which has the last word (RFC 9110 §15.2).
    public var isInterim: Bool { (100...199).contains(self.status) && self.status != 101 }
}
