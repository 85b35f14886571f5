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
    /// How a WebSocket of this route behaves, on either side. Made once, so that its connections share it.
    let webSocketOptions: WebSocketOptions
    let terms: TunnelTerms

    init(_ configuration: RouteConfiguration, upstream: UpstreamPlan?) {
        self.configuration = configuration
        self.upstream = upstream
        self.terms = TunnelTerms(configuration.tunnel)
        self.webSocketOptions = Self.options(of: configuration.tunnel)
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

    private static func options(of settings: TunnelSettings) -> WebSocketOptions {
        var options = WebSocketOptions()
        options.maximumMessageSize = settings.maximumMessageSize
        options.pingInterval = settings.pingInterval
        options.pongTimeout = settings.pongTimeout
        return options
    }
}
