import WebSocketProtocol

/// permessage-deflate as the opening handshake agreed on it, with our own way of compressing.
package struct NegotiatedDeflate: Sendable {
    package let parameters: PermessageDeflateParameters
    package let policy: DeflatePolicy

    package init(_ parameters: PermessageDeflateParameters, policy: DeflatePolicy) {
        self.parameters = parameters
        self.policy = policy
    }
}
