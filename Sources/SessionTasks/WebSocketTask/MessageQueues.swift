import WebSocketProtocol

/// The queues of a WebSocket task that is used message by message.
final class MessageQueues {
    var inbox = MessageInbox()
    var outgoing = OutgoingMessages()
    var assembler: MessageAssembler?
    var pongs: [UInt64: (Result<Void, TaskFailure>) -> Void] = [:]
}
