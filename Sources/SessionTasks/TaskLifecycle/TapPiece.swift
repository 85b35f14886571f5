/// A piece of what a connection carries, as somebody sees it who only looks on.
package struct TapPiece: Sendable {
    package enum Way: String, Sendable {
        case received, sent
    }

    package enum Content: String, Sendable {
        case stream, text, binary
        /// Frames that are passed on as they are: only their size is known.
        case frames
    }

    package let way: Way
    package let content: Content
    /// Cut to what the looker wanted.
    package let bytes: [UInt8]
    /// Of the whole piece.
    package let count: Int
    package let startsMessage: Bool
    package let endsMessage: Bool
}
