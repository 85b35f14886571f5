import StreamTransport
import Synchronization
import TLSEngine

/// A whole configuration ready to work: every certificate read, every reference resolved. Made at once or not at all,
/// so that a reload that cannot work leaves the running plan as it is.
package struct GatewayPlan: Sendable {
    package let configuration: GatewayConfiguration
    package let listeners: [ListenerPlan]

    /// - Parameter former: the running plan. Upstreams and TLS contexts whose settings did not change are taken over,
    ///   with what they know (ejected endpoints, sessions); certificates are read anew all the same.
    /// - Throws: the first fault; nothing was changed then.
    package init(_ configuration: GatewayConfiguration, former: GatewayPlan? = nil) throws(PlanFault) {
        self.configuration = configuration
        var routes: [String: RoutePlan] = [:]
        for route in configuration.routes {
            routes[route.name] = try Self.route(route, configuration, former: former)
        }
        var listeners: [ListenerPlan] = []
        for listener in configuration.listeners {
            listeners.append(try Self.listener(listener, configuration, routes, former: former))
        }
        self.listeners = listeners
    }

    private static func route(
        _ route: RouteConfiguration, _ configuration: GatewayConfiguration, former: GatewayPlan?
    ) throws(PlanFault) -> RoutePlan {
        guard let upstream = configuration.upstream(of: route) else { return RoutePlan(route, upstream: nil) }
        if let kept = former?.upstream(like: upstream) { return RoutePlan(route, upstream: kept) }
        do throws(PlanFault) {
            let usesTLS = upstream.endpoints.contains { $0.url.scheme.speaksTLS }
            let context =
                usesTLS
                ? try TLSMaterial.context(
                    TLSMaterial.configuration(upstream.tls, speaksWebSocket: upstream.speaksWebSocket)) : nil
            return RoutePlan(route, upstream: UpstreamPlan(upstream, context: context))
        } catch {
            throw PlanFault("upstream '\(upstream.name)': \(error)")
        }
    }

    private static func listener(
        _ listener: ListenerConfiguration, _ configuration: GatewayConfiguration, _ routes: [String: RoutePlan],
        former: GatewayPlan?
    ) throws(PlanFault) -> ListenerPlan {
        let served = configuration.routes.filter { configuration.serves($0, on: listener) }.compactMap {
            routes[$0.name]
        }
        let context: TLSContext?
        do throws(PlanFault) {
            context = try listener.tls.map { (settings) throws(PlanFault) in
                try TLSMaterial.context(TLSMaterial.configuration(settings))
            }
        } catch {
            throw PlanFault("listener '\(listener.name)': \(error)")
        }
        return ListenerPlan(
            listener, context: context, routes: served, route: listener.route.flatMap { routes[$0] })
    }

    private func upstream(like wanted: UpstreamConfiguration) -> UpstreamPlan? {
        for listener in self.listeners {
            let plans = listener.routes + [listener.route].compactMap(\.self)
            for plan in plans {
                // TLS material may have changed on disk: such an upstream is made anew.
                if let upstream = plan.upstream, upstream.context == nil, upstream.configuration == wanted {
                    return upstream
                }
            }
        }
        return nil
    }

    /// Connections to all upstreams together, under way and open.
    package var upstreamConnections: Int {
        let routes = self.listeners.flatMap { $0.routes + [$0.route].compactMap(\.self) }
        // A route that two listeners serve stands there twice.
        let upstreams = Dictionary(
            routes.compactMap(\.upstream).map { (ObjectIdentifier($0), $0) }, uniquingKeysWith: { first, _ in first })
        return upstreams.values.reduce(0) { sum, upstream in
            upstream.balancer.withLock { balancer in
                (0..<balancer.count).reduce(sum) { $0 + balancer.connections(of: $1) }
            }
        }
    }

    /// Every route that a listener serves, once.
    package var routes: [RoutePlan] {
        var seen: Set<ObjectIdentifier> = []
        return self.listeners.flatMap { $0.routes + [$0.route].compactMap(\.self) }.filter {
            seen.insert(ObjectIdentifier($0)).inserted
        }
    }

    package func listener(named name: String) -> ListenerPlan? {
        self.listeners.first { $0.configuration.name == name }
    }
}
