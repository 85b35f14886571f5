/// How data is relayed in a tunnel.
package struct TunnelSettings: Sendable, Equatable {
    /// Default message limit where messages are assembled (`echo`, `chat`, `length-prefixed`): 1 MiB.
    package static let defaultMaximumMessageSize = 1024 * 1024

    package var framing = Framing.binary
    package var halfClose = HalfClose.close
    /// permessage-deflate, accepted from clients and offered to WebSocket upstreams; `nil` is off.
    package var compression: CompressionPolicy?
    /// Whether `echo` keeps the fragmentation of messages. A tunnel between two WebSockets always keeps it, unless one
    /// side compresses.
    package var keepsFragmentation = false
    /// Interval of pings to WebSocket peers, 1 s to 1 day; `nil` sends none.
    package var pingInterval: Duration? = .seconds(25)
    /// How long a ping may stay unanswered before the connection is failed, 1 s to 1 h.
    package var pongTimeout: Duration = .seconds(20)
    /// Largest message in bytes after inflation, 1 to 2^53; above it 1009. `nil` is no limit: the default of tunnels, which
    /// relay messages without assembling them. Never `nil` where messages are assembled.
    package var maximumMessageSize: Int?
    /// A tunnel without data for this long is closed; pings are not data. 1 s to 365 days; `nil` is no limit.
    package var idleTimeout: Duration? = .seconds(86_400)
    /// A tunnel of this age is closed. 1 s to 365 days; `nil` is no limit.
    package var maximumAge: Duration? = .seconds(30 * 86_400)
    package var buffer = BufferWatermarks()
    /// Keep-alive of TCP connections to the upstream.
    package var keepAlive = KeepAliveSettings()

    package init() {}
}

/// Settings of permessage-deflate (RFC 7692).
package struct CompressionPolicy: Sendable, Equatable {
    /// Compression level of zlib, 1 (fast) to 9 (small).
    package var level = 6
    /// Messages of fewer bytes are sent uncompressed. 0 to 1 MiB.
    package var minimumSize = 64
    /// Context takeover: smaller messages, but more memory per connection.
    package var keepsContext = true
    /// Window bits of our compressor, 9 to 15.
    package var windowBits = 15

    package init() {}
}

/// Watermarks of the bytes queued in one direction of a tunnel.
package struct BufferWatermarks: Sendable, Equatable {
    /// Reading from the source pauses at this number of bytes. 4 KiB to 64 MiB.
    package var high = 64 * 1024
    /// Reading resumes at this number of bytes. 0 to below `high`; default: a quarter of `high`.
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

/// What happens when one direction of a tunnel ends.
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

/// Keys of `compress`.
package enum CompressionKey: String, CaseIterable, Sendable {
    case level
    case minSize = "min-size"
    case contextTakeover = "context-takeover"
    case windowBits = "window-bits"
}

/// Keys of `buffer`.
package enum BufferKey: String, CaseIterable, Sendable {
    case high
    case low
}

extension CompressionPolicy {
    /// Reads `true`, `false`, or a mapping, which turns compression on.
    static func read(_ section: SectionReader<RouteKey>) -> CompressionPolicy? {
        switch section.valueOrSection(.compress, as: .boolean, keys: CompressionKey.self) {
        case nil: nil
        case .value(let isOn)?: isOn == true ? CompressionPolicy() : nil
        case .section(let inner)?: CompressionPolicy(reading: inner)
        }
    }

    private init(reading section: SectionReader<CompressionKey>) {
        self.init()
        section.read(.level, into: &self.level, as: .integer(1...9))
        section.read(.minSize, into: &self.minimumSize, as: .size(0...1_048_576))
        section.read(.contextTakeover, into: &self.keepsContext, as: .boolean)
        section.read(.windowBits, into: &self.windowBits, as: .integer(9...15))
    }
}

extension BufferWatermarks {
    private static let range = 4096...67_108_864

    /// Reads a mapping, or the high watermark alone; the low watermark is then a quarter of it.
    init(reading section: SectionReader<RouteKey>) {
        self.init()
        switch section.valueOrSection(.buffer, as: .size(Self.range), keys: BufferKey.self) {
        case nil: return
        case .value(let size)?:
            self.high = size ?? self.high
            self.low = self.high / 4
        case .section(let inner)?: self.read(inner)
        }
    }

    private mutating func read(_ inner: SectionReader<BufferKey>) {
        inner.read(.high, into: &self.high, as: .size(Self.range))
        self.low = self.high / 4
        inner.read(.low, into: &self.low, as: .size(0...67_108_863))
        if self.low >= self.high {
            inner.add(.low, expected: "less than the high watermark of \(SizeText(self.high))")
        }
    }
}

extension TunnelSettings {
    /// - Parameter target: the route's target, if it could be read.
    init(reading section: SectionReader<RouteKey>, target: RouteTarget?) {
        self.init()
        section.read(.framing, into: &self.framing, as: .choice)
        section.read(.halfClose, into: &self.halfClose, as: .choice)
        if self.halfClose == .signal, !self.framing.supportsEndMarker {
            section.add(
                .halfClose,
                expected: "hold or close, as an empty message is data in \(self.framing.rawValue) framing "
                    + "and cannot mark an end",
                remedy: "choose one of them, or another framing")
        }
        section.read(.keepFragmentation, into: &self.keepsFragmentation, as: .boolean)
        section.readOptionalOrNone(
            .pingInterval, into: &self.pingInterval, as: .duration(.seconds(1) ... .seconds(86_400)))
        section.read(.pongTimeout, into: &self.pongTimeout, as: .duration(.seconds(1) ... .seconds(3600)))
        section.readOptionalOrNone(.idleTimeout, into: &self.idleTimeout, as: .duration(.lifetime))
        section.readOptionalOrNone(.maxAge, into: &self.maximumAge, as: .duration(.lifetime))
        self.compression = CompressionPolicy.read(section)
        self.buffer = BufferWatermarks(reading: section)
        self.keepAlive = KeepAliveSettings(reading: section.section(.keepAlive))
        section.readOptionalOrNone(
            .userTimeout, into: &self.keepAlive.userTimeout, as: .duration(.seconds(1) ... .seconds(86_400)))
        self.readMessageSize(section, target: target)
    }

    /// Where messages are assembled, they must have a limit, and a length prefix of four bytes implies one.
    private mutating func readMessageSize(_ section: SectionReader<RouteKey>, target: RouteTarget?) {
        let isAssembled = target == .echo || target == .chat || self.framing == .lengthPrefixed
        guard isAssembled else {
            section.readOptionalOrNone(.maxMessageSize, into: &self.maximumMessageSize, as: .size(1...(1 << 53)))
            return
        }
        self.maximumMessageSize = Self.defaultMaximumMessageSize
        section.readOptional(.maxMessageSize, into: &self.maximumMessageSize, as: .size(1...(1 << 30)))
    }
}
