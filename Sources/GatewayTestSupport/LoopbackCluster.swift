import ControlAPI
import GatewayCore

/// Several gateways in this process that are nodes of one cluster.
package struct LoopbackCluster: Sendable {
    package let network: InProcessNetwork
    private let gateways: [String: LoopbackGateway]

    /// Runs `body` with the nodes, and stops them afterwards.
    /// - Parameter change: changes the limits of the conversation between the nodes.
    package static func run<Value>(
        _ names: [String] = ["a", "b", "c"], _ configuration: String = LoopbackGateway.echo,
        limits change: (inout GatewayCluster.Limits) -> Void = { _ in },
        _ body: (LoopbackCluster) async throws -> Value
    ) async throws -> Value {
        var limits = GatewayCluster.Limits()
        // Nodes compare their bans and mutes when a test says so.
        limits.comparisonInterval = .seconds(3600)
        // Nodes that are slow because the machine is busy answer in time. Silent ones are given up early, see `InProcessBus`.
        limits.gatherTimeout = .seconds(60)
        limits.lookupTimeout = .seconds(60)
        limits.commandTimeout = .seconds(60)
        change(&limits)
        let network = InProcessNetwork()
        return try await Self.run(names[...], configuration, limits, network, [:], body)
    }

    private static func run<Value>(
        _ names: ArraySlice<String>, _ configuration: String, _ limits: GatewayCluster.Limits,
        _ network: InProcessNetwork, _ gateways: [String: LoopbackGateway],
        _ body: (LoopbackCluster) async throws -> Value
    ) async throws -> Value {
        guard let name = names.first else { return try await body(Self(network: network, gateways: gateways)) }
        return try await LoopbackGateway.run(configuration, bus: network.bus(name), limits: limits) { gateway in
            var gateways = gateways
            gateways[name] = gateway
            return try await Self.run(names.dropFirst(), configuration, limits, network, gateways, body)
        }
    }

    /// A node that does not exist.
    package struct UnknownNode: Error {}

    package func node(_ name: String) throws -> LoopbackGateway {
        guard let gateway = self.gateways[name] else { throw UnknownNode() }
        return gateway
    }
}
