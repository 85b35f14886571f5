/// A request or a response without its body.
package struct HandshakeHead: Codable, Sendable, Equatable {
    /// The first line, as `GET /chat HTTP/1.1`.
    package var line: String
    /// In the order of the wire.
    package var headers: [Header]

    package init(
        line: String, headers: [Header]
    ) {
        self.line = line
        self.headers = headers
    }
}
