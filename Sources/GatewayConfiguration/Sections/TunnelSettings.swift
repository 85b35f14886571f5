/// How data is relayed in a tunnel.
package struct TunnelSettings: Sendable, Equatable {
    /// Default message limit where messages are assembled (`echo`, `chat`, `length-prefixed`): 1 MiB.
    package static let defaultMaximumMessageSize = 1024 * 1024

    package var framing = Framing.binary
    package var halfClose = HalfClose.close
    /// permessage-deflate, accepted from clients and offered to WebSocket upstreams; `nil` is off.
    package var compression: CompressionPolicy?
    package var keepsFragmentation = false
    /// `nil` sends no pings.
    package var pingInterval: Duration? = .seconds(25)
    package var pongTimeout: Duration = .seconds(20)
    /// In bytes; `nil` is no limit. Never `nil` where messages are assembled.
    package var maximumMessageSize: Int?
    /// `nil` is no limit.
    package var idleTimeout: Duration? = .seconds(86_400)
    /// `nil` is no limit.
    package var maximumAge: Duration? = .seconds(30 * 86_400)
    package var buffer = BufferWatermarks()
    /// Keep-alive of TCP connections to the upstream.
    package var keepAlive = KeepAliveSettings()

    package init() {}
}

/// Settings of permessage-deflate (RFC 7692).
package struct CompressionPolicy: Sendable, Equatable {
    package var level = 6
    package var minimumSize = 64
    /// Context takeover; `nil` for the target's own, as in `RouteTarget.sharesMessages`.
    package var keepsContext: Bool?
    package var windowBits = 15

    package init() {}
}

/// Watermarks of the bytes queued in one direction of a tunnel.
package struct BufferWatermarks: Sendable, Equatable {
    package var high = 64 * 1024
    /// Less than `high`.
    package var low = 16 * 1024

    package init() {}

    package init(high: Int, low: Int) {
        self.high = high
        self.low = low
    }

    /// Largest number of bytes per read: four times `high`, at most 256 KiB. Larger than `high`, because bulk data that
    /// the other side accepts at once is never queued, and each read costs a loop turn.
    ///
    /// - Parameter framing: framing of a stream whose bytes become messages, else `nil`. It lowers the limit: in `lines`
    ///   each byte may become an empty message with up to six bytes of header, and in `base64` a read becomes one
    ///   message that is encoded in one step.
    package func readLimit(for framing: Framing?) -> Int {
        let limit = min(self.high, 64 << 10) * 4
        return switch framing {
        case .lines: limit / 6
        case .base64: limit / 4
        case .binary, .text, .lengthPrefixed, nil: limit
        }
    }
}

/// Action when one direction of a tunnel ends.
package enum HalfClose: String, Sendable, Equatable, CaseIterable {
    /// The other direction stays open until it ends too; no Close frame is sent until then.
    case hold
    /// Queued data is delivered, then the closing handshake begins.
    case close
    /// An empty binary message marks the end of a direction, for peers that support this convention.
    case signal
}

/// Conversion between a byte stream on one side and messages on the other. No effect between two streams or two
/// WebSockets.
package enum Framing: String, Sendable, Equatable, CaseIterable {
    /// Received bytes become binary messages; message boundaries have no meaning.
    case binary
    /// Text messages; a character split over two reads is kept whole. Invalid UTF-8 fails the connection (1007).
    case text
    /// One text message per line; LF and CRLF end a line, and an unfinished last line is a message too.
    case lines
    /// Each message is preceded by its length in four bytes, big-endian; boundaries are kept in both directions.
    case lengthPrefixed = "length-prefixed"
    /// Text messages in base64 (the old `base64` subprotocol). Invalid base64 fails the connection (1007).
    case base64

    /// The subprotocol that requests this framing, named as in websockify; `nil` if there is none.
    package var subprotocol: String? {
        switch self {
        case .binary, .base64: self.rawValue
        case .text, .lines, .lengthPrefixed: nil
        }
    }

    /// Whether an empty binary message can mark the end of a direction (half-close `signal`). In `lengthPrefixed` it is
    /// data: a message of length 0.
    package var supportsEndMarker: Bool {
        switch self {
        case .binary, .text, .lines, .base64: true
        case .lengthPrefixed: false
        }
    }
}

extension TunnelSettings {
    static let framingKeys: [SettingsKey<TunnelSettings>] = [
        .value(
            "framing", \.framing, .choice, example: "lines",
            """
            Conversion between a byte stream on one side and messages on the other; no effect between two streams or \
            two WebSockets. `binary`: received bytes become binary messages. `text`: text messages; a character split \
            over two reads is kept whole. `lines`: one text message per line, ended by LF or CRLF; an unfinished last \
            line is a message too, and a message is written as a line with LF. `length-prefixed`: each message is \
            preceded by its length in four bytes, big-endian. `base64`: text messages in base64. Invalid UTF-8 or \
            base64 fails the connection with 1007.
            """),
        .value(
            "half-close", \.halfClose, .choice, example: "signal",
            """
            What happens when one direction ends: `hold` keeps the other direction open until it ends too, `close` \
            delivers queued data and then closes, `signal` sends an empty binary message. No Close frame is sent while a \
            direction is held open. `signal` is for peers that support it; it is refused with `length-prefixed` framing, \
            where an empty message is data.
            """),
    ]

    static let lifetimeKeys: [SettingsKey<TunnelSettings>] = [
        .orNone(
            "ping-interval", \.pingInterval, .duration(.seconds(1) ... .seconds(86_400)),
            "Interval of pings to WebSocket peers. `none` sends none; then only the kernel detects a dead peer."),
        .value(
            "pong-timeout", \.pongTimeout, .duration(.seconds(1) ... .seconds(3600)),
            """
            How long a WebSocket peer may send nothing after a ping; then it counts as dead and the tunnel ends \
            abnormally. Any received bytes count, and so does reading what was sent before the ping; a peer that was \
            seen reading has four times as long for its next sign.
            """),
        .orNone(
            "idle-timeout", \.idleTimeout, .duration(.lifetime),
            "A tunnel without data for this long is closed, WebSocket peers with 1001. Pings are not data."),
        .orNone(
            "max-age", \.maximumAge, .duration(.lifetime),
            "A tunnel of this age is closed, WebSocket peers with 1001."),
    ]

    static let messageSize = ValueSyntax<Int>.size(1...(1 << 53))
    /// Where messages are assembled in memory.
    static let assembledMessageSize = ValueSyntax<Int>.size(1...(1 << 30))
}

extension CompressionPolicy: SettingsSection {
    static let sectionName = "Compression"
    static let initial = CompressionPolicy()
    static let keys: [SettingsKey<CompressionPolicy>] = [
        .value("level", \.level, .integer(1...9), "Compression level of zlib, from 1 (fast) to 9 (small)."),
        .value(
            "min-size", \.minimumSize, .size(0...1_048_576),
            "Messages of fewer bytes are sent uncompressed; `0` compresses all."),
        .optional(
            "context-takeover", \.keepsContext, .boolean,
            default: "`true`; for `chat` and `rooms` `false` for what the gateway sends", example: "false",
            """
            Keeps the compression's context between messages: smaller messages, but more memory per connection. In rooms `true` \
            compresses each message once for each member, else it is compressed once for all. An endpoint \
            may keep its own although `false` asks it not to, which costs up to 40 KiB for each of its connections.
            """),
        .value(
            "window-bits", \.windowBits, .integer(9...15),
            "Window bits of our compressor. Fewer bits save memory, but messages are larger."),
    ]
}

extension BufferWatermarks: SettingsSection {
    static let sectionName = "Buffer"
    static let initial = BufferWatermarks()
    static let highSize = ValueSyntax<Int>.size(4096...67_108_864)
    static let keys: [SettingsKey<BufferWatermarks>] = [
        .value(
            "high", \.high, Self.highSize,
            "High watermark: reading from the source pauses at this number of queued bytes."),
        .value(
            "low", \.low, .size(0...67_108_863), default: "a quarter of `high`", example: "16KiB",
            "Low watermark, less than `high`: reading resumes at this number of queued bytes."),
    ]

    mutating func check(_ section: SectionReader<BufferWatermarks>) {
        if !section.isSet("low") {
            self.low = self.high / 4
        } else if self.low >= self.high {
            section.add("low", expected: "less than the high watermark of \(SizeText(self.high))")
        }
    }
}
