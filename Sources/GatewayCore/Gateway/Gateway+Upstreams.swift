import StreamTransport
import Synchronization

/// How the endpoints of upstreams stand, for the control plane. From any thread.
extension Gateway {
    /// One endpoint at one moment.
    package struct EndpointStanding: Sendable {
        package let url: EndpointURL
        /// Under way and open.
        package let connections: Int
        /// Left out for a while, since it kept failing.
        package let isEjected: Bool
    }

    /// In their order; empty for an upstream that no route leads to.
    package func standings(ofUpstream name: String) -> [EndpointStanding] {
        self.state.withLock { $0.plan }?.standings(ofUpstream: name, at: self.now) ?? []
    }
}

extension GatewayPlan {
    /// In their order; empty for an upstream that no route leads to.
    package func standings(ofUpstream name: String, at now: MonotonicInstant) -> [Gateway.EndpointStanding] {
        let routes = self.listeners.flatMap { $0.routes + [$0.route].compactMap(\.self) }
        guard let upstream = routes.compactMap(\.upstream).first(where: { $0.configuration.name == name }) else {
            return []
        }
        return upstream.balancer.withLock { balancer in
            upstream.configuration.endpoints.enumerated().map { index, endpoint in
                Gateway.EndpointStanding(
                    url: endpoint.url, connections: balancer.connections(of: index),
                    isEjected: balancer.isEjected(index, at: now))
            }
        }
    }
}
