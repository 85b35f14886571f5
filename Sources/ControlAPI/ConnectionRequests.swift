/// POST /v1/connections: opens a connection.
package struct OpenRequest: Codable, Sendable, Equatable, StrictDecodable {
    /// `ws://`, `wss://`, `tcp://`, `tls://` or `unix://`.
    package var url: String
    /// Fields added to the opening handshake of a WebSocket.
    package var headers: [String: String]?
    /// Offered subprotocols, in order of preference.
    package var subprotocols: [String]?
    /// Whether to offer permessage-deflate. Default: false.
    package var compress: Bool?
    package var tls: TLSRequest?
    package var keepAlive: KeepAliveRequest?
    /// A longer message fails the connection with 1009. Default: 1 MiB; 1 byte to 256 MiB.
    package var maximumMessageSizeBytes: Int?
    /// Alias of `maximumMessageSizeBytes`, named like the task's property.
    package var maximumMessageSize: Int?
    /// Interval of keep-alive pings; 0, the default, sends none.
    package var pingIntervalMs: Double?
    /// Default: 20 s.
    package var pongTimeoutMs: Double?
    /// For name resolution and connecting. Default: 10 s.
    package var connectTimeoutMs: Double?
    /// For the TLS handshake, and separately for the opening handshake. Default: 10 s.
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

    package static let nested: [String: any StrictDecodable.Type] = [
        "tls": TLSRequest.self, "keepAlive": KeepAliveRequest.self,
    ]
    package static let members = [
        "url", "headers", "subprotocols", "compress", "tls", "keepAlive", "maximumMessageSizeBytes",
        "maximumMessageSize", "pingIntervalMs", "pongTimeoutMs", "connectTimeoutMs", "handshakeTimeoutMs",
        "description", "priority", "labels",
    ]
}

/// POST /v1/connections: opens two connections and joins them to a tunnel.
package struct TunnelRequest: Codable, Sendable, Equatable, StrictDecodable {
    package var downstream: OpenRequest
    package var upstream: OpenRequest
    /// Conversion between a byte stream on one side and messages on the other: `binary`, the default, `text`, `lines`,
    /// `length-prefixed` or `base64`.
    package var framing: String?
    /// What the end of one direction does: `hold`, `close`, the default, or `signal`.
    package var halfClose: String?
    /// A tunnel that carries no data for this long is closed; 0 means never. Default: 1 day; 1 s to 365 days.
    package var idleTimeoutMs: Double?
    /// A tunnel of this age is closed; 0 means never. Default: 30 days; 1 s to 365 days.
    package var maximumAgeMs: Double?

    package init(downstream: OpenRequest, upstream: OpenRequest, framing: String? = nil) {
        self.downstream = downstream
        self.upstream = upstream
        self.framing = framing
    }

    package static let nested: [String: any StrictDecodable.Type] = [
        "downstream": OpenRequest.self, "upstream": OpenRequest.self,
    ]
    package static let members = ["downstream", "upstream", "framing", "halfClose", "idleTimeoutMs", "maximumAgeMs"]
}

/// TLS settings of a connection. By default the chain is verified with the system's roots, and the name is the URL's host.
package struct TLSRequest: Codable, Sendable, Equatable, StrictDecodable {
    /// Sent as SNI and verified instead of the URL's host.
    package var serverName: String?
    /// Accepts any certificate. Only for tests.
    package var insecure: Bool?
    /// Certificates in PEM that are trusted instead of the system's roots.
    package var authorities: String?
    /// Offered by ALPN, in order of preference.
    package var applicationProtocols: [String]?
    /// `1.2` (default) or `1.3`.
    package var minimumVersion: String?
    /// Timeout of the handshake. Default: 10 s.
    package var timeoutMs: Double?

    package init(
        serverName: String? = nil, insecure: Bool? = nil, authorities: String? = nil,
        applicationProtocols: [String]? = nil, minimumVersion: String? = nil, timeoutMs: Double? = nil
    ) {
        self.serverName = serverName
        self.insecure = insecure
        self.authorities = authorities
        self.applicationProtocols = applicationProtocols
        self.minimumVersion = minimumVersion
        self.timeoutMs = timeoutMs
    }

    package static let members = [
        "serverName", "insecure", "authorities", "applicationProtocols", "minimumVersion", "timeoutMs",
    ]
}

/// TCP keep-alive.
package struct KeepAliveRequest: Codable, Sendable, Equatable, StrictDecodable {
    /// Idle time before the first probe.
    package var idleMs: Double?
    package var intervalMs: Double?
    package var probes: Int?
    /// How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`).
    package var userTimeoutMs: Double?

    package init(idleMs: Double? = nil, intervalMs: Double? = nil, probes: Int? = nil, userTimeoutMs: Double? = nil) {
        self.idleMs = idleMs
        self.intervalMs = intervalMs
        self.probes = probes
        self.userTimeoutMs = userTimeoutMs
    }

    package static let members = ["idleMs", "intervalMs", "probes", "userTimeoutMs"]
}

/// POST …:send: one message of a WebSocket, or bytes of a stream. Exactly one of `text` and `data`.
package struct SendRequest: Codable, Sendable, Equatable, StrictDecodable {
    package var text: String?
    /// Base64.
    package var data: String?
    /// Default: 10 s.
    package var timeoutMs: Double?

    package init(text: String? = nil, data: String? = nil, timeoutMs: Double? = nil) {
        self.text = text
        self.data = data
        self.timeoutMs = timeoutMs
    }

    package static let members = ["text", "data", "timeoutMs"]
}

/// Result of sending.
package struct SendAnswer: Codable, Sendable, Equatable {
    /// `sent`: the kernel accepted every byte. `queued`: the timeout passed first; the rest stays in the queue.
    package var state: String
    /// Size of the message.
    package var sizeBytes: Int
    /// Bytes still queued on the connection.
    package var queuedSendBytes: Int
    /// Whether the connection is suspended; queued messages are sent when it is resumed.
    package var suspended: Bool

    package init(state: String, sizeBytes: Int, queuedSendBytes: Int, suspended: Bool) {
        self.state = state
        self.sizeBytes = sizeBytes
        self.queuedSendBytes = queuedSendBytes
        self.suspended = suspended
    }
}

/// POST …:receive: receives the next message, or bytes of a stream.
package struct ReceiveRequest: Codable, Sendable, Equatable, StrictDecodable {
    /// Stream: waits for this many bytes, or the end. Default: 1.
    package var minimumBytes: Int?
    /// Stream: returns at most this many bytes, 1 to 1 MiB. Default: 64 KiB.
    package var maximumBytes: Int?
    /// How long to wait, 0 to 10 min. Default: 30 s.
    package var timeoutMs: Double?

    package init(minimumBytes: Int? = nil, maximumBytes: Int? = nil, timeoutMs: Double? = nil) {
        self.minimumBytes = minimumBytes
        self.maximumBytes = maximumBytes
        self.timeoutMs = timeoutMs
    }

    package static let members = ["minimumBytes", "maximumBytes", "timeoutMs"]
}

/// A received message or chunk.
package struct Received: Codable, Sendable, Equatable {
    /// `text` or `data`.
    package var type: String
    package var text: String?
    /// Base64.
    package var data: String?
    package var sizeBytes: Int
    /// Stream: the peer has closed its side, and all its data is read.
    package var isAtEnd: Bool?

    package init(type: String, text: String? = nil, data: String? = nil, sizeBytes: Int, isAtEnd: Bool? = nil) {
        self.type = type
        self.text = text
        self.data = data
        self.sizeBytes = sizeBytes
        self.isAtEnd = isAtEnd
    }
}

/// Round-trip time of a ping.
package struct PingAnswer: Codable, Sendable, Equatable {
    package var rttMs: Double

    package init(rttMs: Double) {
        self.rttMs = rttMs
    }
}

/// One message or chunk seen by `/tap`. The last event, `end`, or the last message of a WebSocket, has `skipped` only.
package struct TapRecord: Codable, Sendable, Equatable {
    /// Counts from 1; numbers that are missing were skipped. Also the `id` of the event.
    package var number: UInt64?
    /// Time at which the gateway forwarded it.
    package var at: String?
    /// `received` or `sent`.
    package var way: String?
    /// `stream`, `text`, `binary`, or `frames` for forwarded frames, whose size alone is known.
    package var content: String?
    /// Size of the whole piece; of `frames`, on the wire.
    package var sizeBytes: Int?
    package var startsMessage: Bool?
    package var endsMessage: Bool?
    package var text: String?
    /// Base64; cut to `maxBytes`.
    package var data: String?
    /// Records skipped since the previous one: not sampled, or dropped because the reader is too slow.
    package var skipped: Int

    package init(
        number: UInt64? = nil, at: String? = nil, way: String? = nil, content: String? = nil, sizeBytes: Int? = nil,
        startsMessage: Bool? = nil, endsMessage: Bool? = nil, text: String? = nil, data: String? = nil, skipped: Int
    ) {
        self.number = number
        self.at = at
        self.way = way
        self.content = content
        self.sizeBytes = sizeBytes
        self.startsMessage = startsMessage
        self.endsMessage = endsMessage
        self.text = text
        self.data = data
        self.skipped = skipped
    }
}
