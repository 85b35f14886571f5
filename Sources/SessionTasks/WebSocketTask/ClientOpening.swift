import WebSocketProtocol

/// How a client's WebSocket comes about: where to connect to, and what to ask for there.
package struct ClientOpening: Sendable {
    package var target: OpeningTarget
    package var handshake: ClientHandshake
    /// How our messages are compressed if the server agrees to one of the handshake's offers.
    package var deflate: DeflatePolicy?

    package init(target: OpeningTarget, handshake: ClientHandshake, deflate: DeflatePolicy? = nil) {
        self.target = target
        self.handshake = handshake
        self.deflate = deflate
    }
}
