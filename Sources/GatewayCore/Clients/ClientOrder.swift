import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol

/// A connection that somebody in charge wants opened.
package struct ClientOrder: Sendable {
    package let url: EndpointURL
    /// Path and query of a WebSocket, percent-encoded.
    package var resource = "/"
    package var fields: [HTTPField] = []
    package var subprotocols: [String] = []
    package var deflate: DeflatePolicy?
    /// For `tls` and `wss`, and for a stream that starts TLS later.
    package var context: TLSContext?
    /// The name that is asked for and verified; `nil` is the URL's host.
    package var serverName: String?
    package var keepAlive = KeepAliveSettings()
    package var options = WebSocketOptions()
    /// For name resolution and connecting together.
    package var connectTimeout: Duration = .seconds(10)
    package var priority: Float = 0.5
    package var description: String?
    package var labels: [String: String] = [:]
    /// Asked of each address before it is tried; `nil` permits all.
    package var permits: (@Sendable (SocketAddress) -> Bool)?
    /// Told of each step of the opening, on its loop.
    package var watch: (@Sendable (OpeningStep) -> Void)?

    package init(_ url: EndpointURL) {
        self.url = url
    }

    var target: OpeningTarget {
        var target = OpeningTarget(self.url.connectTarget)
        target.socket = self.keepAlive.socketOptions
        target.connectTimeout = self.connectTimeout
        target.permits = self.permits
        target.watch = self.watch
        guard self.url.scheme.speaksTLS, let context = self.context else { return target }
        var secure = SecureSettings(context: context, serverName: self.serverName ?? self.url.hostName)
        secure.timeout = self.options.handshakeTimeout
        target.secure = secure
        return target
    }

    var handshake: ClientHandshake {
        ClientHandshake(
            authority: self.url.authority, target: self.resource, subprotocols: self.subprotocols,
            offers: self.deflate?.offers ?? [], fields: self.fields)
    }
}
