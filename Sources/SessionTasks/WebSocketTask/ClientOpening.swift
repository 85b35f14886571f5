import WebSocketProtocol

/// How a client's WebSocket comes about: where to connect to, and what to ask for there.
package struct ClientOpening: Sendable {
    /// Decides about an answer that is no 101: with another opening the task goes on there, its queues untouched; with
    /// `nil` the refusal stands. To be answered once, from any thread.
    package typealias Judge = @Sendable (ResponseHead, @escaping @Sendable (ClientOpening?) -> Void) -> Void

    package var target: OpeningTarget
    package var handshake: ClientHandshake
    /// How our messages are compressed if the server agrees to one of the handshake's offers.
    package var deflate: DeflatePolicy?
    /// `nil`: every refusal stands.
    package var judge: Judge?

    package init(target: OpeningTarget, handshake: ClientHandshake, deflate: DeflatePolicy? = nil) {
        self.target = target
        self.handshake = handshake
        self.deflate = deflate
    }
}
