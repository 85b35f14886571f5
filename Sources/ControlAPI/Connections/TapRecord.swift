/// One piece of what a connection carries, as `/tap` gives it. The last event, `end`, or the last message of a
/// WebSocket, has `skipped` alone.
package struct TapRecord: Codable, Sendable, Equatable {
    /// `received` or `sent`.
    package var way: String?
    /// `stream`, `text`, `binary`, or `frames` for what is passed on unread, of which only the size is told.
    package var content: String?
    /// Of the whole piece, on the wire for `frames`.
    package var bytes: Int?
    package var startsMessage: Bool?
    package var endsMessage: Bool?
    package var text: String?
    /// Base64; cut to `maxBytes`.
    package var data: String?
    /// Messages and pieces left out since the one before: not sampled, or no room as the reader is too slow.
    package var skipped: Int
}
