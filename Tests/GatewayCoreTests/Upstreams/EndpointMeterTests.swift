import GatewayConfiguration
import GatewayCore
import GatewayTestSupport
import SimulatedNetwork
import TestSupport
import Testing

@Suite("Numbers of each endpoint")
struct EndpointMeterTests {
    private static func configuration(_ endpoints: [String] = ["tcp://10.2.0.1:2001", "tcp://10.2.0.1:2002"]) -> String
    {
        """
        listeners: [{name: web, listen: "ws://10.1.0.1:1004"}]
        routes:
          - {name: a, path: /a, target: up}
          - {name: b, path: /b, target: up}
        upstreams:
          - name: up
            endpoints: [\(endpoints.map { "\"\($0)\"" }.joined(separator: ", "))]
            policy: failover
            retries: 1
            eject-failures: 1
            eject-duration: 60s
        """
    }

    private func metrics(_ scene: GatewayScene) -> [GatewayMetrics.Endpoint] {
        scene.gateway.plan.endpointMetrics(at: scene.network.now)
    }

    @Test func connectionsAndFailuresAreCountedForEachEndpoint() throws {
        let scene = try GatewayScene(Self.configuration())
        _ = try scene.upstream(2002)
        let client = try scene.webSocketClient(1004, "/a")
        #expect(scene.head(client)?.contains(" 101 ") == true)
        let metrics = self.metrics(scene)
        #expect(metrics.map(\.url) == ["tcp://10.2.0.1:2001", "tcp://10.2.0.1:2002"])
        #expect(metrics.map(\.upstream) == ["up", "up"] && metrics.map(\.isEjected) == [true, false])
        #expect(metrics.map(\.reading.connections) == [0, 1] && metrics.map(\.reading.connected) == [0, 1])
        #expect(metrics.map(\.reading.failures) == [1, 0])
        #expect(metrics[0].reading.connectTime == .zero && metrics[1].reading.connectTime > .zero)
        client.peer.close()
        #expect(scene.run { self.metrics(scene)[1].reading.connections == 0 })
        #expect(self.metrics(scene).map(\.reading.connected) == [0, 1])
        scene.finish()
    }

    @Test func routesToOneUpstreamShareItsState() throws {
        let scene = try GatewayScene(Self.configuration())
        _ = try scene.upstream(2002)
        for target in ["/a", "/b", "/b"] {
            let client = try scene.webSocketClient(1004, target)
            #expect(scene.head(client)?.contains(" 101 ") == true)
        }
        // Ejected by a client of the first route, it is not tried for those of the second.
        #expect(self.metrics(scene).map(\.reading.failures) == [1, 0])
        #expect(self.metrics(scene).map(\.reading.connections) == [0, 3])
        scene.finish()
    }

    @Test func reloadKeepsTheNumbersOfEndpointsThatStay() throws {
        let scene = try GatewayScene(Self.configuration())
        _ = try scene.upstream(2002)
        let client = try scene.webSocketClient(1004, "/a")
        #expect(scene.head(client)?.contains(" 101 ") == true)
        let changed = Self.configuration(["tcp://10.2.0.1:2003", "tcp://10.2.0.1:2002"])
        let plan = try GatewayPlan(ConfigurationSamples.configuration(changed), former: scene.gateway.plan)
        func connections() -> [Int] { plan.endpointMetrics(at: scene.network.now).map(\.reading.connections) }
        #expect(connections() == [0, 1])
        client.peer.close()
        #expect(scene.run { connections() == [0, 0] })
        #expect(plan.endpointMetrics(at: scene.network.now).map(\.reading.connected) == [0, 1])
        scene.finish()
    }

    /// Its certificates and passwords are read again.
    @Test(arguments: ["tls: {insecure: true}", "proxy: \"http://10.2.0.1:2009\""])
    func reloadKeepsEjectionsAndConnectionsOfAnUpstreamWithFiles(_ setting: String) throws {
        let scheme = setting.hasPrefix("tls") ? "tls" : "tcp"
        let configuration =
            Self.configuration(["\(scheme)://10.2.0.1:2001", "\(scheme)://10.2.0.1:2002"]) + "\n    \(setting)"
        let scene = try GatewayScene(configuration)
        let held = try scene.upstream(scheme == "tls" ? 2002 : 2009)
        _ = try scene.webSocketClient(1004, "/a")
        if scheme == "tcp" {
            // The first connection through the proxy is refused, the second not answered yet.
            #expect(scene.run { held.accepted.count == 1 })
            held.accepted[0].send("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        }
        #expect(scene.run { self.metrics(scene).map(\.isEjected) == [true, false] })
        #expect(scene.run { scene.gateway.plan.upstreamConnections == 1 })
        let plan = try GatewayPlan(ConfigurationSamples.configuration(configuration), former: scene.gateway.plan)
        #expect(plan.endpointMetrics(at: scene.network.now).map(\.isEjected) == [true, false])
        #expect(plan.upstreamConnections == 1)
        scene.finish()
        #expect(plan.upstreamConnections == 0)
    }

    @Test func entriesWithOneURLAreOneEndpoint() throws {
        let twice = ["tcp://10.2.0.1:2002", "tcp://10.2.0.1:2002"]
        let scene = try GatewayScene(Self.configuration(twice))
        _ = try scene.upstream(2002)
        let client = try scene.webSocketClient(1004, "/a")
        #expect(scene.head(client)?.contains(" 101 ") == true)
        let changed = Self.configuration(twice + ["tcp://10.2.0.1:2003"])
        let plan = try GatewayPlan(ConfigurationSamples.configuration(changed), former: scene.gateway.plan)
        let readings = [self.metrics(scene), plan.endpointMetrics(at: scene.network.now)]
            .map { $0.map(\.reading.connections) }
        #expect(readings == [[1], [1, 0]])
        scene.finish()
    }

    @Test func reloadKeepsTheNumbersOfTargetsThatRequestsNamed() throws {
        let folder = try ServedFolder().write("targets", "one: 10.2.0.1:2002\ntwo: 10.2.0.1:2001\n")
        let configuration = """
            listeners: [{name: web, listen: "ws://10.1.0.1:1004"}]
            routes: [{name: a, path: /a, targets: "\(folder.path)/targets"}]
            """
        let scene = try GatewayScene(configuration)
        _ = try scene.upstream(2002)
        let client = try scene.webSocketClient(1004, "/a?token=one")
        #expect(scene.head(client)?.contains(" 101 ") == true)
        let plan = try GatewayPlan(ConfigurationSamples.configuration(configuration), former: scene.gateway.plan)
        let metrics = plan.endpointMetrics(at: scene.network.now)
        #expect(metrics.map(\.url) == ["tcp://10.2.0.1:2002"] && metrics.map(\.reading.connections) == [1])
        scene.finish()
    }

    @Test func endpointsAboveTheLimitAreOne() throws {
        let endpoints = (1...300).map { "tcp://10.2.0.1:\($0)" }
        let scene = try GatewayScene(Self.configuration(endpoints))
        let metrics = self.metrics(scene)
        #expect(metrics.count == GatewayMetrics.endpointLimit)
        #expect(metrics.dropLast().map(\.url) == Array(endpoints.prefix(GatewayMetrics.endpointLimit - 1)))
        #expect(metrics.last?.url == "other" && metrics.last?.upstream == "")
        scene.finish()
    }
}
