import GatewayConfiguration
import StreamTransport
import Synchronization

/// Chooses among the endpoints of an upstream, and ejects for a while those that keep failing.
///
/// Every `choose` is followed by exactly one `release`, when that connection ends or failed to open. In between,
/// `succeeded` or `failed` reports the result of connecting.
package struct Balancer: Sendable {
    /// Ejections grow to this many times the configured duration.
    private static let longestEjection = 16

    private let policy: UpstreamConfiguration.Policy
    private let ejection: EjectionPolicy
    private var endpoints: [EndpointHealth]
    private var last = -1

    package init(_ configuration: UpstreamConfiguration) {
        self.policy = configuration.policy
        self.ejection = configuration.ejection
        self.endpoints = configuration.endpoints.map { EndpointHealth(weight: $0.weight) }
    }

    package var count: Int { self.endpoints.count }

    /// Connections of an endpoint, connecting and open; 0 for an unknown index.
    package func connections(of endpoint: Int) -> Int {
        self.endpoints.indices.contains(endpoint) ? self.endpoints[endpoint].connections : 0
    }

    package func isEjected(_ endpoint: Int, at now: MonotonicInstant) -> Bool {
        self.endpoints.indices.contains(endpoint) && self.endpoints[endpoint].isEjected(at: now)
    }

    /// Chooses an endpoint by the policy.
    ///
    /// - Parameters:
    ///   - tried: endpoints already tried for this connection; chosen again only if no other is left.
    ///   - excluded: endpoints that cannot serve this connection; never chosen.
    /// - Returns: an index into the configuration's endpoints; `nil` only if all are excluded. If all are ejected, all
    ///   are candidates: a guess is better than a certain refusal.
    package mutating func choose(
        avoiding tried: [Int] = [], excluding excluded: [Int] = [], now: MonotonicInstant
    ) -> Int? {
        let usable = self.endpoints.indices.filter { !excluded.contains($0) }
        let available = usable.filter { !self.endpoints[$0].isEjected(at: now) }
        let availableUntried = available.filter { !tried.contains($0) }
        let untried = usable.filter { !tried.contains($0) }
        let candidates = [availableUntried, available, untried, usable].first { !$0.isEmpty } ?? []
        let chosen: Int? =
            switch self.policy {
            case .failover: candidates.first
            case .roundRobin: self.nextInRound(candidates)
            case .leastConnections: self.leastLoaded(candidates)
            }
        guard let chosen else { return nil }
        self.last = chosen
        self.endpoints[chosen].connections += 1
        return chosen
    }

    /// The connection for which `choose` was called has ended, or failed to open.
    package mutating func release(_ endpoint: Int) {
        guard self.endpoints.indices.contains(endpoint), self.endpoints[endpoint].connections > 0 else { return }
        self.endpoints[endpoint].connections -= 1
    }

    /// Connecting succeeded, the opening handshake included: resets the endpoint's failures.
    /// - Returns: whether it had been ejected.
    @discardableResult
    package mutating func succeeded(_ endpoint: Int) -> Bool {
        guard self.endpoints.indices.contains(endpoint) else { return false }
        defer { self.forget(endpoint) }
        return self.endpoints[endpoint].ejections > 0
    }

    private mutating func forget(_ endpoint: Int) {
        self.endpoints[endpoint].failures = 0
        self.endpoints[endpoint].ejections = 0
        self.endpoints[endpoint].ejectedUntil = nil
    }

    /// Connecting failed. After the configured number in a row the endpoint is ejected; when it comes back, one more
    /// failure ejects it again, for twice as long.
    /// - Returns: whether this failure ejected it.
    @discardableResult
    package mutating func failed(_ endpoint: Int, now: MonotonicInstant) -> Bool {
        guard let limit = self.ejection.failures, self.endpoints.indices.contains(endpoint) else { return false }
        var health = self.endpoints[endpoint]
        // Attempts that began before the ejection say nothing new.
        guard !health.isEjected(at: now) else { return false }
        health.failures = min(health.failures + 1, limit)
        if health.failures == limit {
            let factor = min(1 << min(health.ejections, 16), Self.longestEjection)
            health.ejectedUntil = now.advanced(by: self.ejection.duration * factor)
            health.ejections = min(health.ejections + 1, 16)
        }
        self.endpoints[endpoint] = health
        return health.failures == limit
    }

    /// Smooth weighted round-robin, as in nginx: each current weight grows by its weight; the largest is chosen and
    /// reduced by the total.
    private mutating func nextInRound(_ candidates: [Int]) -> Int? {
        var total = 0
        for index in candidates {
            self.endpoints[index].currentWeight += self.endpoints[index].weight
            total += self.endpoints[index].weight
        }
        guard let winner = candidates.max(by: { self.endpoints[$0].currentWeight < self.endpoints[$1].currentWeight })
        else {
            return nil
        }
        let largest = self.endpoints[winner].currentWeight
        let first = candidates.first { self.endpoints[$0].currentWeight == largest } ?? winner
        self.endpoints[first].currentWeight -= total
        return first
    }

    /// The fewest connections for its weight; among equals, the next after the last choice.
    private func leastLoaded(_ candidates: [Int]) -> Int? {
        let turned = candidates.filter { $0 > self.last } + candidates.filter { $0 <= self.last }
        return turned.reduce(nil) { best, index in
            guard let best else { return index }
            let (load, bestLoad) = (self.endpoints[index], self.endpoints[best])
            return load.connections * bestLoad.weight < bestLoad.connections * load.weight ? index : best
        }
    }
}

/// The balancer of an upstream, which survives reloads that do not change the upstream's settings.
final class SharedBalancer: Sendable {
    private let balancer: Mutex<Balancer>

    init(_ balancer: Balancer) {
        self.balancer = Mutex(balancer)
    }

    func withLock<Value>(_ body: (inout Balancer) -> sending Value) -> sending Value {
        self.balancer.withLock(body)
    }
}

/// Health of one endpoint.
private struct EndpointHealth: Hashable, Sendable {
    let weight: Int
    /// Connections not yet released: connecting and open.
    var connections = 0
    /// Failures since the last success.
    var failures = 0
    /// Ejections since the last success.
    var ejections = 0
    var ejectedUntil: MonotonicInstant?
    /// Current weight of the smooth weighted round-robin.
    var currentWeight = 0

    init(weight: Int) {
        self.weight = max(weight, 1)
    }

    func isEjected(at now: MonotonicInstant) -> Bool {
        self.ejectedUntil.map { now < $0 } ?? false
    }
}

/// Random numbers from the loop's system: the kernel's generator, or a simulation's seed.
struct LoopRandomGenerator: RandomNumberGenerator {
    private let system: any System

    init(_ loop: Loop) {
        self.system = loop.system
    }

    mutating func next() -> UInt64 {
        self.system.randomWords(1).first ?? 0
    }
}
