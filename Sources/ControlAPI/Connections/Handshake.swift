/// The opening handshake of a WebSocket; values of credentials are hidden.
package struct Handshake: Codable, Sendable, Equatable {
    package var request: HandshakeHead
    package var response: HandshakeHead

    package init(
        request: HandshakeHead, response: HandshakeHead
    ) {
        self.request = request
        self.response = response
    }
}
