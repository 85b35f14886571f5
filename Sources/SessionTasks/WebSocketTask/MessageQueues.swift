import WebSocketProtocol

/// The queues of a WebSocket task that is used message by message.
final class MessageQueues {
    var inbox = MessageInbox()
    var outgoing = OutgoingMessages()
    var pings = PingLedger()
    var pongs: [UInt64: AwaitedPong] = [:]
    /// The message that is being received.
    var gathered: [UInt8] = []
    var heldEnd: HeldEnd?
    /// Told that the peer's Close frame came, before the end.
    var closeObserver: ((CloseCode?, [UInt8]) -> Void)?

    func takeMessage(_ kind: MessageKind) -> WebSocketTask.Message {
        var bytes: [UInt8] = []
        swap(&bytes, &self.gathered)
        switch kind {
        case .binary: return .data(bytes)
        // The engine has checked every byte.
        case .text: return .string(String(decoding: bytes, as: UTF8.self))
        }
    }
}
