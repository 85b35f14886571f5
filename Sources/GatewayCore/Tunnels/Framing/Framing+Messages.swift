import WebSocketProtocol

extension Framing {
    /// The kind of the messages made from a stream.
    package var messageKind: MessageKind {
        switch self {
        case .binary, .lengthPrefixed: .binary
        case .text, .lines, .base64: .text
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
