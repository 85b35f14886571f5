/// A client's opening handshake that has passed every check of RFC 6455 §4.2.1, waiting for our decision.
public struct OpeningRequest: Equatable, Sendable {
    /// The request as it came.
    public let head: RequestHead
    /// Path and query as they were written, percent-encoding included; begins with `/`.
    public let resourceName: String
    /// Host and port as the client names them.
    public let host: String
    /// `Sec-WebSocket-Key`.
    public let key: String
    /// In the client's order of preference.
    public let subprotocols: [String]
    /// All extensions offered, in the client's order of preference.
    public let extensions: [NamedExtension]

    init(
        head: RequestHead, resourceName: String, host: String, key: String, subprotocols: [String],
        extensions: [NamedExtension]
    ) {
        self.head = head
        self.resourceName = resourceName
        self.host = host
        self.key = key
        self.subprotocols = subprotocols
        self.extensions = extensions
    }

    /// The part of the resource name before the first `?`.
    public var path: String { String(self.resourceName.prefix { $0 != "?" }) }

    /// The part of the resource name behind the first `?`; `nil` without one.
    public var query: String? {
        self.resourceName.firstIndex(of: "?").map { String(self.resourceName[self.resourceName.index(after: $0)...]) }
    }

    /// The page that a browser connects for; other clients mostly send none. It proves nothing of them (RFC 6455
    /// §10.2).
    public var origin: String? { self.head.fields["Origin"] }
}
