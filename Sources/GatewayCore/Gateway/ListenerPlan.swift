import StreamTransport
import TLSEngine

/// A listener ready to work: its settings, and the TLS context that a reload swaps the material of.
package final class ListenerPlan: Sendable {
    package let configuration: ListenerConfiguration
    let context: TLSContext?
    let routes: RouteTable
    /// The one route of a listener without requests.
    let route: RoutePlan?

    init(_ configuration: ListenerConfiguration, context: TLSContext?, routes: RouteTable, route: RoutePlan?) {
        self.configuration = configuration
        self.context = context
        self.routes = routes
        self.route = route
    }
}
