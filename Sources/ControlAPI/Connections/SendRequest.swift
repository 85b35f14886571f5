/// POST …:send: one message of a WebSocket, or bytes of a stream. Exactly one of the two.
package struct SendRequest: Codable, Sendable, Equatable, StrictlyRead {
    package var text: String?
    /// Base64.
    package var data: String?
    /// Default: 10 s.
    package var timeoutMs: Double?

    package init(
        text: String? = nil, data: String? = nil, timeoutMs: Double? = nil
    ) {
        self.text = text
        self.data = data
        self.timeoutMs = timeoutMs
    }

    package static let members = [
        "text", "data", "timeoutMs",
    ]
}
