import WebSocketProtocol

/// Where a piece of payload stands in its message.
package struct FrameMark: Hashable, Sendable {
    package var kind: MessageKind
    /// The first piece of its message.
    package var startsMessage: Bool
    /// The last piece of its frame.
    package var endsFrame: Bool
    /// The last piece of its message.
    package var endsMessage: Bool

    package init(_ kind: MessageKind, startsMessage: Bool, endsFrame: Bool, endsMessage: Bool) {
        self.kind = kind
        self.startsMessage = startsMessage
        self.endsFrame = endsFrame
        self.endsMessage = endsMessage
    }
}
