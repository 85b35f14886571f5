/// The two kinds of WebSocket message (RFC 6455 §5.6).
@frozen
public enum MessageKind: Sendable, Hashable {
    case text
    case binary

    /// The opcode of such a message's first frame.
    package var opcode: Opcode {
        switch self {
        case .text: .text
        case .binary: .binary
        }
    }
}
