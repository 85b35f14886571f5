import SessionTasks
import StreamTransport
import WebSocketProtocol

/// A route ready to work.
package final class RoutePlan: Sendable {
    package let configuration: RouteConfiguration
    /// `nil` for `echo` and `chat`.
    let upstream: UpstreamPlan?
    /// What is accepted from clients, and offered to WebSocket upstreams; `nil` for no compression.
    let deflate: DeflatePolicy?
    let origins: OriginRules

    init(_ configuration: RouteConfiguration, upstream: UpstreamPlan?) {
        self.configuration = configuration
        self.upstream = upstream
        self.origins = OriginRules(of: configuration)
        self.deflate = configuration.tunnel.compression.map { policy in
            DeflatePolicy(
                keepsOwnContext: policy.keepsContext, letsPeerKeepContext: policy.keepsContext,
                ownWindowBits: policy.windowBits, level: policy.level, minimumSize: policy.minimumSize)
        }
    }

    /// What a client and this route agreed on.
    func negotiated(_ acceptance: HandshakeAcceptance) -> NegotiatedDeflate? {
        guard let parameters = acceptance.deflate, let policy = self.deflate else { return nil }
        return NegotiatedDeflate(parameters, policy: policy)
    }

    /// How a WebSocket of this route behaves, on either side.
    var webSocketOptions: WebSocketOptions {
        var options = WebSocketOptions()
        options.maximumMessageSize = self.configuration.tunnel.maximumMessageSize
        options.pingInterval = self.configuration.tunnel.pingInterval
        options.pongTimeout = self.configuration.tunnel.pongTimeout
        return options
    }
}
