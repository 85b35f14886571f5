import WebSocketProtocol

/// Where a chunk of payload stands in its message.
package struct ChunkMark: Hashable, Sendable {
    package var kind: MessageKind
    /// First chunk of its message.
    package var startsMessage: Bool
    /// Last chunk of its message.
    package var endsMessage: Bool

    @inlinable
    package init(_ kind: MessageKind, startsMessage: Bool, endsMessage: Bool) {
        self.kind = kind
        self.startsMessage = startsMessage
        self.endsMessage = endsMessage
    }

    /// A message in one piece.
    @inlinable
    package static func whole(_ kind: MessageKind) -> ChunkMark {
        ChunkMark(kind, startsMessage: true, endsMessage: true)
    }
}
