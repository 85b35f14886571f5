import GatewayConfiguration
import GatewayCore
import GatewayTestSupport
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

/// A gateway, and a program of scripted peers that play its clients and its upstreams, on a network without faults.
final class GatewayScene {
    let network: SimulatedNetwork
    let gateway: SimulatedGateway
    let host: ScriptedHost

    /// - Parameter configuration: YAML. Listeners on 10.1.0.1; upstreams on 10.2.0.1, opened with `upstream`.
    init(
        _ configuration: String, seed: UInt64 = 1, faults: FaultPlan = .calm, loops: Int = 1,
        buffers: RoomBuffers = RoomBuffers(), responders: [String: any HTTPResponder] = [:]
    )
        throws
    {
        self.network = SimulatedNetwork(seed: seed, faults: faults)
        self.gateway = try SimulatedGateway(
            ConfigurationSamples.configuration(configuration), on: self.network, loops: loops,
            buffers: buffers, responders: responders)
        let system = self.network.makeSystem()
        let host = ScriptedHost(on: system)
        system.drive { [weak host] in host?.turn() }
        self.host = host
    }

    func run(atMost limit: Duration = .seconds(10), until condition: () -> Bool) -> Bool {
        self.network.run(until: condition, atMost: limit) == .conditionMet
    }

    func settle() {
        self.network.settle()
    }

    static func gatewayAddress(_ port: UInt16) -> SocketAddress {
        .ipv4(address: 0x0A01_0001, port: port)
    }

    func upstream(_ port: UInt16) throws -> ScriptedListener {
        try self.host.listen(at: .ipv4(address: 0x0A02_0001, port: port))
    }

    func client(_ port: UInt16) throws -> ScriptedPeer {
        try self.host.connect(to: Self.gatewayAddress(port))
    }

    /// A client that requested a WebSocket at `target`, with the bytes after its request in the same segment.
    func webSocketClient(_ port: UInt16, _ target: String, followedBy rest: [UInt8] = []) throws -> RawWebSocketPeer {
        let peer = try self.client(port)
        peer.send(Array(RawWebSocketPeer.request(to: target).utf8) + rest)
        return RawWebSocketPeer(peer, isClient: true)
    }

    /// The head that the peer received first; the bytes after it count as its first frames.
    func head(_ peer: RawWebSocketPeer) -> String? {
        _ = self.run { peer.peer.received.count >= 4 && Self.headEnd(peer.peer.received) != nil }
        guard let end = Self.headEnd(peer.peer.received) else { return nil }
        let all = peer.peer.takeReceived()
        peer.leftover = Array(all[end...])
        return String(decoding: all[..<end], as: UTF8.self)
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (0...(bytes.count - 4)).first { bytes[$0...].starts(with: [13, 10, 13, 10]) }.map { $0 + 4 }
    }

    /// Ends the remaining connections, and expects that the gateway has none any more.
    func finish(sourceLocation: SourceLocation = #_sourceLocation) {
        self.host.close()
        _ = self.network.run(for: .seconds(60))
        var empty = 0
        self.gateway.drain(DrainSettings()) { empty += 1 }
        _ = self.network.run(for: .seconds(60))
        #expect(empty == self.gateway.parts.count, sourceLocation: sourceLocation)
        #expect(self.gateway.liveCount == 0 && self.gateway.watchedCount == 0, sourceLocation: sourceLocation)
        #expect(self.gateway.process.openDescriptors == 0, sourceLocation: sourceLocation)
        #expect(self.gateway.shared.withAdmission { $0.connections } == 0, sourceLocation: sourceLocation)
        #expect(self.gateway.plan.upstreamConnections == 0, sourceLocation: sourceLocation)
        #expect(self.network.misuses == [], sourceLocation: sourceLocation)
    }
}
