/// How the bytes of one tunnel are carried.
package struct TunnelSettings: Sendable, Equatable {
    /// The message limit where messages must be assembled (`echo`, `chat`, `length-prefixed`) and none is given: 1 MiB.
    package static let assembledMessageSize = 1024 * 1024

    package var framing = Framing.binary
    package var halfClose = HalfClose.close
    /// permessage-deflate: accepted from clients that offer it and offered to WebSocket upstreams; `nil` is off.
    package var compression: CompressionPolicy?
    /// Messages leave `echo` in the fragments they came in. Between two WebSocket sides they do anyway, unless one
    /// compresses.
    package var keepsFragmentation = false
    /// Between pings on WebSocket sides, 1 s to 1 day; `nil` sends none.
    package var pingInterval: Duration? = .seconds(25)
    /// How long a ping may stay unanswered before the peer counts as dead, 1 s to 1 h.
    package var pongTimeout: Duration = .seconds(20)
    /// Largest message in bytes after inflation, 1 to 2^53; above it 1009. `nil` (a tunnel's default) is no limit, as
    /// tunnels carry messages without assembling them; never `nil` where they are assembled.
    package var maximumMessageSize: Int?
    /// A tunnel that carried no data for this long ends; pings do not count. 1 s to 365 days; `nil` never.
    package var idleTimeout: Duration? = .seconds(86_400)
    /// A tunnel this old ends. 1 s to 365 days; `nil` never.
    package var maximumAge: Duration? = .seconds(30 * 86_400)
    package var buffer = BufferWatermarks()
    /// Towards the upstream's side, when it is TCP.
    package var keepAlive = KeepAliveSettings()

    package init() {}
}

/// How many bytes of one direction of a tunnel may wait to be written.
package struct BufferWatermarks: Sendable, Equatable {
    /// From here on its source is not read. 4 KiB to 64 MiB.
    package var high = 64 * 1024
    /// Down to here it is read again. 0 to below `high`; a quarter of it unless said.
    package var low = 16 * 1024

    package init() {}

    package init(high: Int, low: Int) {
        self.high = high
        self.low = low
    }

    /// Most bytes taken from the sender in one read: four times `high`, at most 256 KiB. Larger than `high`, because
    /// bulk that the other side takes at once never waits, and each read costs a turn.
    ///
    /// - Parameter framing: that of a stream whose bytes become messages, else `nil`. In `lines` each byte may end an
    ///   empty
    ///   message, whose head takes six; so much less is taken at once. In `base64` a read becomes one message, made in
    ///   one step.
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
    /// The other direction stays open until it ends too; no Close frame is sent meanwhile.
    case hold
    /// Data in flight is delivered, then the closing handshake begins.
    case close
    /// An empty binary message marks the end of a direction, for peers that know it.
    case signal
}

/// Conversion between a byte stream on one side and messages on the other. Without effect between two streams or two
/// WebSockets.
package enum Framing: String, Sendable, Equatable, CaseIterable {
    /// Bytes as they come are binary messages; boundaries mean nothing.
    case binary
    /// Text messages; a character split over two reads is put together again. Bytes that are not UTF-8 end it (1007).
    case text
    /// A line is a text message; LF and CRLF end a line, and an unfinished last line is a message.
    case lines
    /// A length in four bytes, big-endian, precedes each message; boundaries are kept both ways.
    case lengthPrefixed = "length-prefixed"
    /// Text messages of base64 (the old `base64` subprotocol). Text that is not base64 ends it (1007).
    case base64

    /// The subprotocol by which clients ask for this framing, as websockify names them; `nil` where there is none.
    package var subprotocol: String? {
        switch self {
        case .binary, .base64: self.rawValue
        case .text, .lines, .lengthPrefixed: nil
        }
    }

    /// Whether an empty binary message is free to mark the end of a direction (half-close `signal`). In
    /// `lengthPrefixed` it is data: a message of length 0.
    package var canMarkEnd: Bool {
        switch self {
        case .binary, .text, .lines, .base64: true
        case .lengthPrefixed: false
        }
    }
}

/// Keys of `buffer`.
package enum BufferKey: String, CaseIterable, Sendable {
    case high
    case low
}

extension BufferWatermarks {
    private static let range = 4096...67_108_864

    /// A size alone is the high watermark, and a quarter of it the low one.
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
    /// - Parameter target: where the route leads, as far as that could be read.
    init(reading section: SectionReader<RouteKey>, target: RouteTarget?) {
        self.init()
        section.read(.framing, into: &self.framing, as: .choice)
        section.read(.halfClose, into: &self.halfClose, as: .choice)
        if self.halfClose == .signal, !self.framing.canMarkEnd {
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

    /// A framing that assembles messages needs a limit; four bytes of length imply one of their own.
    private mutating func readMessageSize(_ section: SectionReader<RouteKey>, target: RouteTarget?) {
        let isAssembled = target == .echo || target == .chat || self.framing == .lengthPrefixed
        guard isAssembled else {
            section.readOptionalOrNone(.maxMessageSize, into: &self.maximumMessageSize, as: .size(1...(1 << 53)))
            return
        }
        self.maximumMessageSize = Self.assembledMessageSize
        section.readOptional(.maxMessageSize, into: &self.maximumMessageSize, as: .size(1...(1 << 30)))
    }
}
