import GatewayConfiguration
import GatewayCore
import StreamTransport
import TestSupport
import Testing

@Suite("Balancer over the endpoints of an upstream")
struct BalancerTests {
    private static let start = MonotonicInstant(nanoseconds: 0)

    private static func balancer(
        _ policy: UpstreamConfiguration.Policy, weights: [Int], failures: Int? = 3
    ) -> Balancer {
        let endpoints = weights.map { weight in
            UpstreamEndpoint(
                url: EndpointURL(scheme: .tcp, location: .address(.loopback, port: 1)), weight: weight)
        }
        var configuration = UpstreamConfiguration(name: "u", endpoints: endpoints)
        configuration.policy = policy
        configuration.ejection.failures = failures
        configuration.ejection.duration = .seconds(10)
        return Balancer(configuration)
    }

    private static func at(_ seconds: Int) -> MonotonicInstant { self.start.advanced(by: .seconds(seconds)) }

    @Test func roundRobinGoesByWeightWithoutBursts() {
        var balancer = Self.balancer(.roundRobin, weights: [5, 1, 1])
        let order = (0..<14).map { _ in balancer.choose(now: Self.start) }
        #expect(order == [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0])
    }

    @Test func excludedEndpointIsNeverChosen() {
        var balancer = Self.balancer(.failover, weights: [1, 1])
        #expect(balancer.choose(excluding: [0], now: Self.start) == 1)
        #expect(balancer.choose(avoiding: [1], excluding: [0], now: Self.start) == 1)
        #expect(balancer.choose(excluding: [0, 1], now: Self.start) == nil)
    }

    @Test func leastConnectionsGoesByLoadAndWeight() {
        var balancer = Self.balancer(.leastConnections, weights: [1, 1, 2])
        let first = (0..<4).map { _ in balancer.choose(now: Self.start) ?? -1 }
        #expect(first.sorted() == [0, 1, 2, 2])
        balancer.release(1)
        #expect(balancer.choose(now: Self.start) == 1)
        #expect(balancer.connections(of: 2) == 2)
    }

    @Test func leastConnectionsTakesTurnsAmongEquals() {
        var balancer = Self.balancer(.leastConnections, weights: [1, 1, 1])
        let order = (0..<6).map { _ in
            let chosen = balancer.choose(now: Self.start) ?? -1
            balancer.release(chosen)
            return chosen
        }
        #expect(order == [0, 1, 2, 0, 1, 2])
    }

    @Test func failoverSelectsTheFirstHealthyEndpoint() {
        var balancer = Self.balancer(.failover, weights: [1, 1, 1], failures: 1)
        #expect(balancer.choose(now: Self.start) == 0)
        balancer.failed(0, now: Self.start)
        #expect(balancer.choose(now: Self.at(1)) == 1)
        #expect(balancer.choose(now: Self.at(10)) == 0)
    }

    @Test(arguments: UpstreamConfiguration.Policy.allCases)
    func aRetryPrefersAnEndpointNotTriedYet(_ policy: UpstreamConfiguration.Policy) {
        var balancer = Self.balancer(policy, weights: [1, 1, 1])
        var tried: [Int] = []
        for _ in 0..<3 {
            guard let chosen = balancer.choose(avoiding: tried, now: Self.start) else { break }
            #expect(!tried.contains(chosen))
            tried.append(chosen)
        }
        #expect(Set(tried) == [0, 1, 2])
        #expect(balancer.choose(avoiding: tried, now: Self.start) != nil)
    }

    @Test func failuresInARowEjectForAWhileThatGrows() {
        var balancer = Self.balancer(.failover, weights: [1, 1])
        for _ in 0..<2 { balancer.failed(0, now: Self.start) }
        #expect(!balancer.isEjected(0, at: Self.start))
        balancer.failed(0, now: Self.start)
        #expect(balancer.isEjected(0, at: Self.at(9)))
        #expect(!balancer.isEjected(0, at: Self.at(10)))
        var now = 10
        for length in [20, 40, 80, 160, 160] {
            balancer.failed(0, now: Self.at(now))
            #expect(balancer.isEjected(0, at: Self.at(now + length - 1)))
            #expect(!balancer.isEjected(0, at: Self.at(now + length)))
            now += length
        }
    }

    @Test func successResetsTheFailureCount() {
        var balancer = Self.balancer(.failover, weights: [1, 1])
        for _ in 0..<3 { balancer.failed(0, now: Self.start) }
        balancer.succeeded(0)
        for _ in 0..<2 { balancer.failed(0, now: Self.at(20)) }
        #expect(!balancer.isEjected(0, at: Self.at(20)))
        balancer.failed(0, now: Self.at(20))
        #expect(!balancer.isEjected(0, at: Self.at(30)))
    }

    @Test func failuresDuringAnEjectionDoNotLengthenIt() {
        var balancer = Self.balancer(.failover, weights: [1, 1], failures: 1)
        balancer.failed(0, now: Self.start)
        balancer.failed(0, now: Self.at(5))
        #expect(!balancer.isEjected(0, at: Self.at(10)))
    }

    @Test(arguments: UpstreamConfiguration.Policy.allCases)
    func ejectedEndpointsAreUsedWhenAllAreEjected(_ policy: UpstreamConfiguration.Policy) {
        var balancer = Self.balancer(policy, weights: [1, 1], failures: 1)
        for endpoint in 0..<2 { balancer.failed(endpoint, now: Self.start) }
        let first = balancer.choose(now: Self.at(1))
        let second = balancer.choose(avoiding: [first ?? -1], now: Self.at(1))
        #expect(first != nil && second != nil && first != second)
    }

    @Test func endpointsAreNotEjectedByDefault() {
        var balancer = Self.balancer(.failover, weights: [1, 1], failures: nil)
        for _ in 0..<100 { balancer.failed(0, now: Self.start) }
        #expect(balancer.choose(now: Self.start) == 0)
    }

    @Test func callsForUnknownEndpointsChangeNothing() {
        var empty = Self.balancer(.roundRobin, weights: [])
        #expect(empty.choose(now: Self.start) == nil)
        empty.failed(0, now: Self.start)
        empty.succeeded(3)
        empty.release(-1)
        #expect(empty.connections(of: 7) == 0)
        var one = Self.balancer(.roundRobin, weights: [1])
        one.release(0)
        #expect(one.connections(of: 0) == 0)
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func connectionsAreCountedThroughAnyHistory(_ seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let policy = UpstreamConfiguration.Policy.allCases[Int.random(in: 0..<3, using: &random)]
        var balancer = Self.balancer(policy, weights: [1, 3, 2, 1])
        var open: [Int] = []
        for step in 0..<200 {
            let now = Self.at(step)
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1: if let chosen = balancer.choose(now: now) { open.append(chosen) }
            case 2:
                guard !open.isEmpty else { continue }
                balancer.release(open.remove(at: Int.random(in: 0..<open.count, using: &random)))
            default: balancer.failed(Int.random(in: 0..<4, using: &random), now: now)
            }
            for endpoint in 0..<4 {
                #expect(balancer.connections(of: endpoint) == open.filter { $0 == endpoint }.count, "seed \(seed)")
            }
        }
    }
}
