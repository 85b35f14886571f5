import GatewayConfiguration
import StreamTransport
import Synchronization

/// Counts the connections to one endpoint. A reload hands it on to the same URL in the upstream of the same name, as
/// connections of before go on.
final class EndpointMeter: Sendable {
    private let state = Mutex(EndpointReading())

    var reading: EndpointReading { self.state.withLock { $0 } }

    func began() { self.state.withLock { $0.connections += 1 } }
    func released() { self.state.withLock { $0.connections = max(0, $0.connections - 1) } }
    func failed() { self.state.withLock { $0.failures &+= 1 } }

    func connected(after time: Duration) {
        self.state.withLock {
            $0.connected &+= 1
            $0.connectTime += time
        }
    }
}

/// Connections to one endpoint since the start, or to several.
package struct EndpointReading: Sendable, Equatable {
    /// Connecting and open.
    package var connections = 0
    /// Number of those that were opened, with their opening handshake.
    package var connected: UInt64 = 0
    /// Number of attempts that failed because of the endpoint.
    package var failures: UInt64 = 0
    /// Total time that successful attempts took.
    package var connectTime = Duration.zero

    fileprivate mutating func add(_ other: EndpointReading) {
        self.connections += other.connections
        self.connected &+= other.connected
        self.failures &+= other.failures
        self.connectTime += other.connectTime
    }
}

extension GatewayMetrics {
    /// One endpoint of an upstream.
    package struct Endpoint: Sendable {
        /// Empty for all those above the limit together.
        package let upstream: String
        /// `other` for those.
        package let url: String
        package private(set) var reading: EndpointReading
        package private(set) var isEjected: Bool

        fileprivate mutating func add(_ other: Endpoint) {
            self.reading.add(other.reading)
            self.isEjected = self.isEjected || other.isEjected
        }
    }

    /// Number of endpoints reported separately.
    package static let endpointLimit = 256
}

extension GatewayPlan {
    /// The endpoints of all upstreams that routes lead to; those above the limit are added up.
    package func endpointMetrics(at now: MonotonicInstant) -> [GatewayMetrics.Endpoint] {
        var all: [GatewayMetrics.Endpoint] = []
        // Files of targets may name the same endpoint.
        var places: [[String]: Int] = [:]
        for upstream in self.upstreams {
            for (index, meter) in upstream.meters.enumerated() {
                let isFirst = upstream.meters.firstIndex { $0 === meter } == index
                let endpoint = GatewayMetrics.Endpoint(
                    upstream: upstream.configuration.name, url: upstream.endpointURLs[index],
                    reading: isFirst ? meter.reading : .init(),
                    isEjected: upstream.balancer.withLock { $0.isEjected(index, at: now) })
                if let place = places[[endpoint.upstream, endpoint.url]] {
                    all[place].add(endpoint)
                } else {
                    places[[endpoint.upstream, endpoint.url]] = all.count
                    all.append(endpoint)
                }
            }
        }
        guard all.count > GatewayMetrics.endpointLimit else { return all }
        let kept = all.prefix(GatewayMetrics.endpointLimit - 1)
        var others = GatewayMetrics.Endpoint(upstream: "", url: "other", reading: EndpointReading(), isEjected: false)
        for endpoint in all.dropFirst(kept.count) { others.add(endpoint) }
        return kept + [others]
    }
}

extension Gateway {
    package var endpointMetrics: [GatewayMetrics.Endpoint] {
        self.state.withLock { $0.plan }?.endpointMetrics(at: self.now) ?? []
    }
}
