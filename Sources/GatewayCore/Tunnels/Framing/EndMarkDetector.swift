import WebSocketProtocol

/// Finds the empty binary messages of a WebSocket that mark the end of its direction (`half-close: signal`).
///
/// A message is empty in one frame or in several: fragmentation has no meaning (RFC 6455 §5.4).
package struct EndMarkDetector: Sendable {
    package enum Finding: Hashable, Sendable {
        /// The piece belongs to a message with content, or to a text message.
        case data
        /// The piece is empty, like all earlier ones of its binary message: nothing to forward.
        case undecided
        /// A binary message ended without content.
        case endMark
    }

    /// The current message had no content so far.
    private var isEmpty = true

    package init() {}

    /// Takes the next piece of a message.
    /// - Parameter count: bytes of the piece.
    package mutating func take(_ kind: MessageKind, count: Int, endsMessage: Bool) -> Finding {
        let isUndecided = self.isEmpty && count == 0 && kind == .binary
        self.isEmpty = isUndecided || endsMessage
        guard isUndecided else { return .data }
        return endsMessage ? .endMark : .undecided
    }
}
