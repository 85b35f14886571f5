/// One piece of what a connection carries, as `/tap` gives it. The last event, `end`, or the last message of a
/// WebSocket, has `skipped` alone.
package struct TapRecord: Codable, Sendable, Equatable {
    /// From 1 up, in the order of the wire; numbers that are missing are of what was left out. The `id` of the event.
    package var number: UInt64?
    /// When it passed.
    package var at: String?
    /// `received` or `sent`.
    package var way: String?
    /// `stream`, `text`, `binary`, or `frames` for what is passed on unread, of which only the size is told.
    package var content: String?
    /// Of the whole piece, on the wire for `frames`.
    package var sizeBytes: Int?
    package var startsMessage: Bool?
    package var endsMessage: Bool?
    package var text: String?
    /// Base64; cut to `maxBytes`.
    package var data: String?
    /// Messages and pieces left out since the one before: not sampled, or no room as the reader is too slow.
    package var skipped: Int

    package init(
        number: UInt64? = nil, at: String? = nil, way: String? = nil, content: String? = nil, sizeBytes: Int? = nil,
        startsMessage: Bool? = nil, endsMessage: Bool? = nil, text: String? = nil, data: String? = nil, skipped: Int
    ) {
        self.number = number
        self.at = at
        self.way = way
        self.content = content
        self.sizeBytes = sizeBytes
        self.startsMessage = startsMessage
        self.endsMessage = endsMessage
        self.text = text
        self.data = data
        self.skipped = skipped
    }
}
