import GatewayCore
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Upstreams with endpoints that take no connection")
struct UnusableUpstreamTests {
    private static func configuration(_ endpoint: String) -> String {
        """
        listeners: [{name: web, listen: "ws://10.1.0.1:1004"}]
        routes:
          - {name: alone, path: /alone, target: alone}
          - {name: both, path: /both, target: both}
        upstreams:
          - {name: alone, endpoints: ["\(endpoint)"], retries: 0, eject-failures: 1, eject-duration: 60s}
          - name: both
            endpoints: ["\(endpoint)", "tcp://10.2.0.1:2001"]
            policy: failover
            retries: 1
            eject-failures: 1
            eject-duration: 60s
        """
    }

    private static func ejected(_ scene: GatewayScene, _ upstream: String) -> [Bool] {
        scene.gateway.plan.endpointSnapshots(ofUpstream: upstream, at: scene.network.now).map(\.isEjected)
    }

    enum Fault: CaseIterable {
        case full
        case forbidden
        case missing
    }

    @Test(arguments: Fault.allCases)
    func anEndpointsFaultEjectsItAndTheNextIsTried(_ fault: Fault) throws {
        let path = "/run/upstream.sock"
        let scene = try GatewayScene(Self.configuration("unix://\(path)"))
        var descriptors: [Descriptor] = []
        let system = scene.host.system
        if fault != .missing {
            var options = ListenOptions()
            options.backlog = 1
            options.mode = fault == .forbidden ? 0 : 0o600
            descriptors.append(try system.listen(.unix(path: path), options: options).get())
            while descriptors.count < 10, case .success(let filler) = system.connect(.unix(path: path)) {
                descriptors.append(filler)
            }
        }
        let refused = try scene.webSocketClient(1004, "/alone")
        #expect(scene.head(refused)?.hasPrefix("HTTP/1.1 502 ") == true)
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["upstream/connecting/unreachable"])
        #expect(Self.ejected(scene, "alone") == [true])

        _ = try scene.upstream(2001)
        let served = try scene.webSocketClient(1004, "/both")
        #expect(scene.head(served)?.hasPrefix("HTTP/1.1 101 ") == true)
        #expect(Self.ejected(scene, "both") == [true, false])
        for descriptor in descriptors { system.close(descriptor) }
        scene.finish()
    }

    @Test func localResourceFailureIs503AndEjectsNoEndpoint() throws {
        let scene = try GatewayScene(Self.configuration("tcp://10.2.0.1:2002"))
        scene.network.connectScripts[.ipv4(address: 0x0A02_0001, port: 2002)] = .noLocalPort
        let refused = try scene.webSocketClient(1004, "/alone")
        let head = scene.head(refused)
        #expect(head?.hasPrefix("HTTP/1.1 503 ") == true && head?.contains("\r\nDate: ") == true)
        scene.settle()
        #expect(scene.gateway.endings.map(\.reason) == ["gateway/connecting/system"])
        #expect(Self.ejected(scene, "alone") == [false])
        scene.finish()
    }
}
