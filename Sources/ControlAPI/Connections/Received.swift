/// What was received.
package struct Received: Codable, Sendable, Equatable {
    /// `text` or `data`.
    package var type: String
    package var text: String?
    /// Base64.
    package var data: String?
    package var bytes: Int
    /// Stream: the peer has finished sending, and nothing is left.
    package var isAtEnd: Bool?

    package init(
        type: String, text: String? = nil, data: String? = nil, bytes: Int, isAtEnd: Bool? = nil
    ) {
        self.type = type
        self.text = text
        self.data = data
        self.bytes = bytes
        self.isAtEnd = isAtEnd
    }
}
