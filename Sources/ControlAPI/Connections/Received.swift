/// What was received.
package struct Received: Codable, Sendable, Equatable {
    /// `text` or `data`.
    package var type: String
    package var text: String?
    /// Base64.
    package var data: String?
    package var sizeBytes: Int
    /// Stream: the peer has finished sending, and nothing is left.
    package var isAtEnd: Bool?

    package init(
        type: String, text: String? = nil, data: String? = nil, sizeBytes: Int, isAtEnd: Bool? = nil
    ) {
        self.type = type
        self.text = text
        self.data = data
        self.sizeBytes = sizeBytes
        self.isAtEnd = isAtEnd
    }
}
