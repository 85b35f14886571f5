import GatewayConfiguration
import SessionTasks
import StreamTransport
import TLSEngine
import WebSocketProtocol
import WireText

/// A connection to open on behalf of the control plane.
package struct ClientConnectionRequest: Sendable {
    package let url: EndpointURL
    /// Path and query of a WebSocket, percent-encoded.
    package var resource = "/"
    package var fields: [HTTPField] = []
    package var subprotocols: [String] = []
    package var deflate: DeflatePolicy?
    /// For `tls` and `wss`, and for a stream that starts TLS later.
    package var context: TLSContext?
    /// Host name for SNI and verification; `nil` uses the URL's host.
    package var serverName: String?
    package var keepAlive = KeepAliveSettings()
    package var options = WebSocketOptions()
    /// For name resolution and connecting together.
    package var connectTimeout: Duration = .seconds(10)
    package var priority: Float = 0.5
    package var description: String?
    package var labels: [String: String] = [:]
    /// Evaluated for each address before it is tried; `nil` permits all.
    package var permits: (@Sendable (SocketAddress) -> Bool)?
    /// Called for each step of the opening, on its loop.
    package var watch: (@Sendable (OpeningStep) -> Void)?

    package init(_ url: EndpointURL) {
        self.url = url
    }

    /// The URL as it is listed, without credentials in its query.
    var shownURL: String { CredentialName.hidingCredentials(inTarget: self.url.description) }

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

extension ClientConnectionRequest {
    /// A task that connects when it is opened.
    /// - Parameter startsPaused: no message is read before a relay is attached.
    func endpoint(on loop: Loop, startsPaused: Bool = false) -> RelayEndpoint {
        let endpoint: RelayEndpoint
        if self.url.scheme.speaksWebSocket {
            let opening = ClientOpening(target: self.target, handshake: self.handshake, deflate: self.deflate)
            endpoint = .webSocket(
                WebSocketTask(opening: opening, on: loop, options: self.options, startsPaused: startsPaused))
        } else {
            endpoint = .stream(StreamTask(to: self.target, on: loop))
        }
        endpoint.task.record.priority = self.priority
        if let description = self.description { endpoint.task.record.update { $0.label = description } }
        return endpoint
    }
}

/// Why a requested connection failed to open.
package struct ClientFailure: Error, Sendable {
    /// Key of the connection, under which its final report is kept.
    package let key: ConnectionKey?
    package let failure: TaskFailure
    /// The server's answer to the opening handshake, if it was not 101.
    package let response: ResponseHead?

    init(_ key: ConnectionKey?, failure: TaskFailure, response: ResponseHead?) {
        self.key = key
        self.failure = failure
        self.response = response
    }
}
