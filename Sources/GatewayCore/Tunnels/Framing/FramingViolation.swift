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

    /// What a WebSocket peer is told (RFC 6455 §7.4.1).
    package var closeCode: UInt16 {
        switch self {
        case .invalidText, .invalidBase64: 1007
        case .messageTooLong: 1009
        case .unfinishedMessage: 1011
        }
    }
}
