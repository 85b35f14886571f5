import WebSocketProtocol

/// One message on its way to a room.
struct ChatMessage: Sendable {
    let kind: MessageKind
    let bytes: [UInt8]
}
