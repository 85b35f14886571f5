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

    /// Its place among all that passed, what was left out included; set by whoever takes it.
    package var number: UInt64 = 0
    /// When it passed, in milliseconds since 1970-01-01T00:00:00Z; set by whoever takes it.
    package var at: Int64 = 0
    package let way: Way
    package let content: Content
    /// Cut to what the looker wanted.
    package let bytes: [UInt8]
    /// Of the whole piece.
    package let count: Int
    package let startsMessage: Bool
    package let endsMessage: Bool
}
