/// POST /v1/connections: opens a connection.
package struct OpenRequest: AnnotatedRequest {
    @Member(.uri("`ws://`, `wss://`, `tcp://`, `tls://` or `unix://`.")) package var url = ""
    @Member("Fields added to the opening handshake of a WebSocket.") package var headers: [String: String]?
    @Member("Offered subprotocols, in order of preference.") package var subprotocols: [String]?
    @Member("Whether to offer permessage-deflate. Default: false.") package var compress: Bool?
    @Member package var tls: TLSRequest?
    @Member package var keepAlive: KeepAliveRequest?
    @Member(.range(1...268_435_456, "A longer message fails the connection with 1009. Default: 1 MiB."))
    package var maximumMessageSizeBytes: Int?
    @Member(.range(1...268_435_456, "Synonym of `maximumMessageSizeBytes`, named like the task's property."))
    package var maximumMessageSize: Int?
    @Member(.milliseconds(0...86_400_000, "Interval of keep-alive pings. Default: 0, none; otherwise at least 100."))
    package var pingIntervalMs: Double?
    @Member(.milliseconds(100...86_400_000, "Default: 20 s.")) package var pongTimeoutMs: Double?
    @Member(.milliseconds(1...600_000, "For name resolution and connecting. Default: 10 s."))
    package var connectTimeoutMs: Double?
    @Member(
        .milliseconds(
            1...600_000, "For the TLS handshake, and separately for the opening handshake. Default: 10 s."))
    package var handshakeTimeoutMs: Double?
    @Member(.text(limit: 1024)) package var description: String?
    @Member(.range(0...1, "A hint. Default: 0.5.")) package var priority: Double?
    @Member(.labels()) package var labels: [String: String]?

    package init() {}
}

/// POST /v1/connections: opens two connections and joins them to a tunnel.
package struct TunnelRequest: StrictDecodable {
    @Member package var downstream = OpenRequest()
    @Member package var upstream = OpenRequest()
    @Member(
        .words(
            ["binary", "text", "lines", "length-prefixed", "base64"],
            "Conversion between a byte stream on one side and messages on the other. Default: binary."))
    package var framing: String?
    @Member(.words(["hold", "close", "signal"], "What the end of one direction does. Default: close."))
    package var halfClose: String?
    @Member(
        .milliseconds(
            0...31_536_000_000,
            "A tunnel that carries no data for this long is closed; 0: never; otherwise at least 1000. Default: 1 day.")
    )
    package var idleTimeoutMs: Double?
    @Member(
        .milliseconds(
            0...31_536_000_000, "A tunnel of this age is closed; 0: never; otherwise at least 1000. Default: 30 days."))
    package var maximumAgeMs: Double?

    package init() {}
}

/// TLS settings of a connection. By default the chain is verified with the system's roots, and the name is the URL's
/// host.
package struct TLSRequest: StrictDecodable {
    @Member("Sent as SNI and verified instead of the URL's host.") package var serverName: String?
    @Member("Accepts any certificate. Only for tests.") package var insecure: Bool?
    @Member("Certificates in PEM that are trusted instead of the system's roots.") package var authorities: String?
    @Member("Offered by ALPN, in order of preference.") package var applicationProtocols: [String]?
    @Member(.words(["1.2", "1.3"], "Default: 1.2.")) package var minimumVersion: String?
    @Member(.milliseconds(1...600_000, "Timeout of the handshake. Default: 10 s.")) package var timeoutMs: Double?

    package init() {}
}

/// TCP keep-alive.
package struct KeepAliveRequest: StrictDecodable {
    @Member(.milliseconds(1000...32_400_000, "Idle time before the first probe.")) package var idleMs: Double?
    @Member(.milliseconds(1000...32_400_000)) package var intervalMs: Double?
    @Member(.range(1...127)) package var probes: Int?
    @Member(
        .milliseconds(
            1000...86_400_000, "How long sent data may stay unacknowledged (`TCP_USER_TIMEOUT`)."))
    package var userTimeoutMs: Double?

    package init() {}
}

/// POST …:send: one message of a WebSocket, or bytes of a stream. Exactly one of `text` and `data`.
package struct SendRequest: StrictDecodable {
    @Member package var text: String?
    @Member(.base64()) package var data: String?
    @Member(.milliseconds(0...600_000, "Default: 10 s.")) package var timeoutMs: Double?

    package init() {}
}

/// Result of sending.
package struct SendAnswer: ControlModel {
    @Member(
        .words(
            ["sent", "queued"],
            "`sent`: the kernel accepted every byte; `queued`: the timeout passed first, the rest stays in the queue."))
    package var state = ""
    @Member("Size of the payload.") package var sizeBytes = 0
    @Member("Bytes still queued on the connection.") package var queuedSendBytes = 0
    @Member("Whether the connection is suspended; queued data is sent when it is resumed.")
    package var suspended = false

    package init() {}
}

/// POST …:receive: receives the next message, or bytes of a stream.
package struct ReceiveRequest: StrictDecodable {
    @Member(.range(0...1_048_576, "Stream: waits for this many bytes, or the end. Default: 1."))
    package var minimumBytes: Int?
    @Member(.range(1...1_048_576, "Stream: returns at most this many bytes. Default: 64 KiB."))
    package var maximumBytes: Int?
    @Member(.milliseconds(0...600_000, "How long to wait. Default: 30 s.")) package var timeoutMs: Double?

    package init() {}
}

/// A received message or chunk.
package struct Received: ControlModel {
    @Member(.words(["text", "data"])) package var type = ""
    @Member package var text: String?
    @Member(.base64()) package var data: String?
    @Member("Size of the payload.") package var sizeBytes = 0
    @Member("Stream: the peer has closed its side, and all its data is read.") package var isAtEnd: Bool?

    package init() {}
}

/// Round-trip time of a ping.
package struct PingAnswer: ControlModel {
    @Member(.milliseconds()) package var rttMs: Double = 0

    package init() {}
}

/// One message or chunk seen by `/tap`. The last event, `end`, or the last message of a WebSocket, has `skipped` only.
package struct TapRecord: ControlModel {
    @Member("Counts from 1; numbers that are missing were skipped. Also the `id` of the event.")
    package var number: UInt64?
    @Member(.time("Time at which the gateway forwarded it.")) package var at: String?
    @Member(.words(["received", "sent"])) package var way: String?
    @Member(
        .words(
            ["stream", "text", "binary", "frames"], "`frames` are forwarded frames, of which only the size is known."))
    package var content: String?
    @Member("Size of the whole piece; of `frames`, on the wire.") package var sizeBytes: Int?
    @Member package var startsMessage: Bool?
    @Member package var endsMessage: Bool?
    @Member package var text: String?
    @Member(.base64("Cut to `maxBytes`.")) package var data: String?
    @Member("Records skipped since the previous one: not sampled, or dropped because the reader is too slow.")
    package var skipped = 0

    package init() {}
}
