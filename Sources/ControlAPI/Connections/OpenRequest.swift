/// POST /v1/connections: what to open.
package struct OpenRequest: Codable, Sendable, Equatable, StrictlyRead {
    /// `ws://`, `wss://`, `tcp://`, `tls://` or `unix://`.
    package var url: String
    /// Added to the opening handshake of a WebSocket.
    package var headers: [String: String]?
    /// Offered, the most wanted first.
    package var subprotocols: [String]?
    /// Offers permessage-deflate. Default: no.
    package var compress: Bool?
    package var tls: TLSRequest?
    package var keepAlive: KeepAliveRequest?
    /// A longer message fails the connection with 1009. Default: 1 MiB; 1 byte to 256 MiB.
    package var maximumMessageSizeBytes: Int?
    /// The same, by the name that the task's property has.
    package var maximumMessageSize: Int?
    /// Between keep-alive pings; 0, the default, sends none.
    package var pingIntervalMs: Double?
    /// Default: 20 s.
    package var pongTimeoutMs: Double?
    /// For name resolution and connecting. Default: 10 s.
    package var connectTimeoutMs: Double?
    /// For TLS, and again for the opening handshake. Default: 10 s.
    package var handshakeTimeoutMs: Double?
    /// At most 1024 bytes.
    package var description: String?
    /// 0 to 1. Default: 0.5.
    package var priority: Double?
    /// At most 64, each name and value of at most 256 bytes.
    package var labels: [String: String]?

    package init(
        url: String, headers: [String: String]? = nil, subprotocols: [String]? = nil, compress: Bool? = nil,
        tls: TLSRequest? = nil, keepAlive: KeepAliveRequest? = nil, maximumMessageSizeBytes: Int? = nil,
        pingIntervalMs: Double? = nil, pongTimeoutMs: Double? = nil, connectTimeoutMs: Double? = nil,
        handshakeTimeoutMs: Double? = nil, description: String? = nil, priority: Double? = nil,
        labels: [String: String]? = nil
    ) {
        self.url = url
        self.headers = headers
        self.subprotocols = subprotocols
        self.compress = compress
        self.tls = tls
        self.keepAlive = keepAlive
        self.maximumMessageSizeBytes = maximumMessageSizeBytes
        self.pingIntervalMs = pingIntervalMs
        self.pongTimeoutMs = pongTimeoutMs
        self.connectTimeoutMs = connectTimeoutMs
        self.handshakeTimeoutMs = handshakeTimeoutMs
        self.description = description
        self.priority = priority
        self.labels = labels
    }

    package static let nested: [String: any StrictlyRead.Type] = [
        "tls": TLSRequest.self, "keepAlive": KeepAliveRequest.self,
    ]
    package static let members = [
        "url", "headers", "subprotocols", "compress", "tls", "keepAlive", "maximumMessageSizeBytes",
        "maximumMessageSize", "pingIntervalMs", "pongTimeoutMs", "connectTimeoutMs", "handshakeTimeoutMs",
        "description", "priority", "labels",
    ]
}
