import GatewayConfiguration
import WebSocketProtocol

/// State of the framing between a stream and a WebSocket, both directions. Not needed where bytes become binary
/// messages and back without a limit, the default.
final class TunnelFraming {
    /// Stream to WebSocket.
    var toMessages: StreamToMessages
    /// WebSocket to stream.
    var toStream: MessagesToStream

    private init(_ framing: Framing, messageLimit: Int) {
        self.toMessages = StreamToMessages(framing, messageLimit: messageLimit)
        self.toStream = MessagesToStream(framing, messageLimit: messageLimit)
    }

    /// - Returns: `nil` if the framing needs no state.
    static func needed(by settings: TunnelSettings) -> TunnelFraming? {
        let limit = settings.maximumMessageSize ?? settings.framing.assembledLimit
        if settings.framing == .binary, limit == .max { return nil }
        return TunnelFraming(settings.framing, messageLimit: limit)
    }
}

extension Framing {
    /// The message limit where the route gives none: only a framing that must hold whole messages needs one. Lines pass
    /// as fragments while they arrive, both ways.
    fileprivate var assembledLimit: Int {
        switch self {
        case .binary, .text, .lines, .base64: .max
        case .lengthPrefixed: TunnelSettings.defaultMaximumMessageSize
        }
    }
}

extension Framing {
    /// The kind of the messages made from a stream.
    package var messageKind: MessageKind {
        switch self {
        case .binary, .lengthPrefixed: .binary
        case .text, .lines, .base64: .text
        }
    }
}

/// Next piece of a message made from a stream.
package enum FramingStep: Hashable, Sendable {
    /// No more output for this input. Bytes from the offset on were not used: they must precede the next input.
    case exhausted
    /// Send these bytes of the input, as they are.
    case chunk(Range<Int>, ChunkPosition)
    /// Send these converted bytes.
    case replacement([UInt8], ChunkPosition)
    /// The stream broke the framing; every later step returns the same.
    case violation(FramingViolation)
}

/// A peer's bytes do not fit the framing of the route. The tunnel ends abnormally.
package enum FramingViolation: String, Error, Hashable, Sendable {
    /// Not UTF-8, or a character unfinished at the end.
    case invalidText = "invalid-text"
    /// Not base64 of RFC 4648 §4: a foreign character, wrong padding, or bits beyond the last byte.
    case invalidBase64 = "invalid-base64"
    /// A message or line above the limit.
    case messageTooLong = "message-too-long"
    /// The stream ended inside a length-prefixed message.
    case unfinishedMessage = "unfinished-message"

    /// Close code for a WebSocket peer (RFC 6455 §7.4.1).
    package var closeCode: UInt16 {
        switch self {
        case .invalidText, .invalidBase64: 1007
        case .messageTooLong: 1009
        case .unfinishedMessage: 1011
        }
    }
}
