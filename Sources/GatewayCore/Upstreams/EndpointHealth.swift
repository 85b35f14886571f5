import StreamTransport

/// What a balancer knows of one endpoint.
struct EndpointHealth: Hashable, Sendable {
    let weight: Int
    /// Connections chosen for it and not given back: under way and open.
    var connections = 0
    /// Failures since the last success.
    var failures = 0
    /// Ejections since the last success.
    var ejections = 0
    var ejectedUntil: MonotonicInstant?
    /// Its claim in the smooth weighted round.
    var claim = 0

    init(weight: Int) {
        self.weight = max(weight, 1)
    }

    func isEjected(at now: MonotonicInstant) -> Bool {
        self.ejectedUntil.map { now < $0 } ?? false
    }
}
