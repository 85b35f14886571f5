import GatewayCore
import Testing

@Suite("What a reload touches")
struct ConfigurationDifferenceTests {
    private let old: GatewayConfiguration

    init() throws {
        self.old = try ConfigurationSamples.configuration(
            """
            listeners:
              - {name: a, listen: "ws://127.0.0.1:1"}
              - {name: b, listen: "tcp://127.0.0.1:2", route: raw}
            routes:
              - {name: one, path: /one, target: u}
              - {name: two, path: /two, target: v}
              - {name: raw, target: u}
            upstreams:
              - {name: u, endpoints: "tcp://h:1"}
              - {name: v, endpoints: "tcp://h:2"}
            """)
    }

    private func difference(_ change: (inout GatewayConfiguration) -> Void) -> ConfigurationDifference {
        var new = self.old
        change(&new)
        return ConfigurationDifference(from: self.old, to: new)
    }

    @Test func isEmptyBetweenEquals() {
        let difference = self.difference { _ in }
        #expect(difference.isEmpty)
        #expect(difference.routes.unchanged == ["one", "two", "raw"])
        #expect(difference.listeners.unchanged == ["a", "b"])
    }

    @Test func isEmptyWhenOnlyTheOrderChanged() {
        let difference = self.difference {
            $0.routes.reverse()
            $0.listeners.reverse()
        }
        #expect(difference.isEmpty)
    }

    @Test func namesWhatCameAndWent() {
        let difference = self.difference {
            $0.listeners.removeFirst()
            $0.routes[1].name = "three"
            $0.upstreams.append(UpstreamConfiguration(name: "w", endpoints: []))
        }
        #expect(difference.listeners.removed == ["a"])
        #expect(difference.listeners.unchanged == ["b"])
        #expect(difference.routes.added == ["three"])
        #expect(difference.routes.removed == ["two"])
        #expect(difference.upstreams.added == ["w"])
        #expect(!difference.isEmpty)
    }

    @Test func aListenerIsBoundAnewOnlyForAnotherAddress() {
        let limits = self.difference { $0.listeners[0].limits.maximumConnections = 5 }
        #expect(limits.listeners.changed == ["a"])
        #expect(limits.rebound == [])
        let address = self.difference { $0.listeners[1].address = .tcp(.loopback, port: 3) }
        #expect(address.listeners.changed == ["b"])
        #expect(address.rebound == ["b"])
    }

    @Test func aChangedUpstreamChangesTheRoutesThatLeadToIt() {
        let difference = self.difference { $0.upstreams[0].connectTimeout = .seconds(1) }
        #expect(difference.upstreams.changed == ["u"])
        #expect(difference.routes.changed == ["one", "raw"])
        #expect(difference.routes.unchanged == ["two"])
    }

    @Test func aRouteChangedInItselfLeavesTheOthersAlone() {
        let difference = self.difference { $0.routes[1].tunnel.framing = .lines }
        #expect(difference.routes.changed == ["two"])
        #expect(difference.routes.unchanged == ["one", "raw"])
        #expect(difference.upstreams.isEmpty)
    }

    @Test func tellsSettingsOfTheGatewayFromThoseThatNeedARestart() {
        #expect(self.difference { $0.drain.timeout = .seconds(1) }.gatewayChanged)
        #expect(self.difference { $0.maximumConnections = 1 }.gatewayChanged)
        #expect(self.difference { $0.log.level = .debug }.gatewayChanged)
        let loops = self.difference { $0.loops = 1 }
        #expect(loops.loopsChanged)
        #expect(!loops.gatewayChanged)
    }
}
