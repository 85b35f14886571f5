import WebSocketProtocol

/// One message on its way to a room. Its bytes are shared by all loops and members that it goes to.
package struct ChatMessage: Sendable {
    /// Memory that a message takes beside its bytes, in every queue together.
    private static let overhead = 128

    package let kind: MessageKind
    package let bytes: [UInt8]

    /// What the message counts for in a limit, in bytes. So one limit bounds large messages and empty ones alike.
    package var cost: Int { self.bytes.count + Self.overhead }

    package init(kind: MessageKind, bytes: [UInt8]) {
        self.kind = kind
        self.bytes = bytes
    }
}
