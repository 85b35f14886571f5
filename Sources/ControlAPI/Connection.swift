/// A stream or WebSocket task. Timestamps are RFC 3339 in UTC, durations milliseconds, sizes bytes of payload; a member
/// that does not apply, or was not selected by `fields`, is missing.
package struct Connection: Codable, Sendable, Equatable {
    /// `17`, or `17u` for the connection that the gateway opened to the upstream for `17`.
    package var id: String?
    /// `stream` or `webSocket`.
    package var kind: String?
    /// `accepted` by a listener, or `opened` by the gateway.
    package var direction: String?
    /// `opening`, `open`, `closing` or `closed`.
    package var state: String?
    /// State of the task: `suspended`, `running`, `canceling` or `completed`.
    package var taskState: String?
    package var description: String?
    /// 0 to 1; a hint.
    package var priority: Double?
    /// Requested URL of a connection opened through the control plane.
    package var url: String?
    package var listener: String?
    package var route: String?
    /// The upstream's name; the URL if the route's target is a URL.
    package var upstream: String?
    /// URL of the chosen endpoint.
    package var endpoint: String?
    /// The id of the connection on the tunnel's other side.
    package var tunnelPartner: String?
    package var peerAddress: String?
    /// Source address of a trusted PROXY header.
    package var clientAddress: String?
    package var localAddress: String?
    package var subprotocol: String?
    package var createdAt: String?
    package var openedAt: String?
    package var lastActivityAt: String?
    package var ageMs: Double?
    package var idleMs: Double?
    package var receivedBytes: UInt64?
    package var sentBytes: UInt64?
    package var receivedMessages: UInt64?
    package var sentMessages: UInt64?
    /// Frames of every kind.
    package var receivedFrames: UInt64?
    package var sentFrames: UInt64?
    /// Bytes to be sent that the kernel has not accepted yet.
    package var queuedSendBytes: Int?
    /// Bytes received but not delivered.
    package var queuedReceiveBytes: Int?
    package var unreadMessages: Int?
    /// How long reading from the peer was paused because its data could not be delivered.
    package var receiveStalledMs: Double?
    /// How long data for this peer waited because the peer did not read it; in a tunnel, how long reading from the
    /// other side was paused for that.
    package var sendStalledMs: Double?
    /// Whether it is stalled now.
    package var stalled: Bool?
    package var suspended: Bool?
    /// Whether its data is forwarded to a tunnel partner, an echo or a chat room.
    package var relayed: Bool?
    package var inputClosed: Bool?
    package var outputClosed: Bool?
    package var ping: RoundTripTimes?
    package var compression: Compression?
    package var tls: TLSDetails?
    package var handshake: Handshake?
    /// Code of the first Close frame, ours or the peer's; 1005 if it has none.
    package var closeCode: Int?
    package var closeReason: String?
    /// Party, phase and cause: `upstream/relaying/clean`.
    package var terminationReason: String?
    package var terminationDetail: String?
    package var closedAt: String?
    package var labels: [String: String]?

    package init(id: String? = nil) {
        self.id = id
    }
}

/// A page of connections. The `Link` header has the next page too (RFC 8288).
package struct ConnectionPage: Codable, Sendable, Equatable {
    package var items: [Connection]
    /// Path and query of the next page; missing on the last one.
    package var next: String?

    package init(items: [Connection], next: String? = nil) {
        self.items = items
        self.next = next
    }
}

/// PATCH of a connection: missing members are not changed.
package struct ConnectionPatch: Codable, Sendable, Equatable, StrictDecodable {
    package var description: String?
    package var priority: Double?
    /// Replaces all labels.
    package var labels: [String: String]?

    package init(description: String? = nil, priority: Double? = nil, labels: [String: String]? = nil) {
        self.description = description
        self.priority = priority
        self.labels = labels
    }

    package static let members = ["description", "priority", "labels"]
}

/// The opening handshake of a WebSocket; values of credentials are hidden.
package struct Handshake: Codable, Sendable, Equatable {
    package var request: HandshakeHead
    package var response: HandshakeHead

    package init(request: HandshakeHead, response: HandshakeHead) {
        self.request = request
        self.response = response
    }
}

/// A request or a response without its body.
package struct HandshakeHead: Codable, Sendable, Equatable {
    /// The first line: `GET /chat HTTP/1.1`.
    package var line: String
    /// In the order on the wire.
    package var headers: [Header]

    package init(line: String, headers: [Header]) {
        self.line = line
        self.headers = headers
    }
}

/// One header field.
package struct Header: Codable, Sendable, Equatable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// permessage-deflate on one connection.
package struct Compression: Codable, Sendable, Equatable {
    /// Payload bytes per byte on the wire, frame headers included; missing while nothing was sent.
    package var sentRatio: Double?

    package init(sentRatio: Double? = nil) {
        self.sentRatio = sentRatio
    }
}

/// Round-trip times of pings; p50 and p99 are of the last 16.
package struct RoundTripTimes: Codable, Sendable, Equatable {
    package var lastMs: Double
    package var p50Ms: Double
    package var p99Ms: Double
    /// Total number of answered pings.
    package var count: UInt64

    package init(lastMs: Double, p50Ms: Double, p99Ms: Double, count: UInt64) {
        self.lastMs = lastMs
        self.p50Ms = p50Ms
        self.p99Ms = p99Ms
        self.count = count
    }
}

/// Negotiated parameters of TLS.
package struct TLSDetails: Codable, Sendable, Equatable {
    /// `TLS 1.3`, for example.
    package var version: String
    /// IANA name of the cipher suite.
    package var cipher: String
    /// Negotiated by ALPN.
    package var applicationProtocol: String?
    /// Server name sent by the client.
    package var serverName: String?
    package var resumed: Bool
    /// Sizes of the peer's certificates in DER, the leaf first.
    package var peerCertificateSizesBytes: [Int]

    package init(
        version: String, cipher: String, applicationProtocol: String? = nil, serverName: String? = nil,
        resumed: Bool, peerCertificateSizesBytes: [Int]
    ) {
        self.version = version
        self.cipher = cipher
        self.applicationProtocol = applicationProtocol
        self.serverName = serverName
        self.resumed = resumed
        self.peerCertificateSizesBytes = peerCertificateSizesBytes
    }
}
