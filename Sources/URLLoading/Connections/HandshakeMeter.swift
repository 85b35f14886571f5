import HTTPTransport
import SessionTasks
import StreamTransport

/// Measures one opening handshake after the other, by the steps that are told of it.
struct HandshakeMeter {
    /// Of the handshake under way.
    private(set) var metrics: ExchangeMetrics?

    init(_ place: ConnectTarget) {
        let now = ContinuousClock.now
        var metrics = ExchangeMetrics(fetchStart: now)
        if case .host(let name, let port) = place, SocketAddress(literal: name, port: port) == nil {
            metrics.timings.lookupStart = now
        } else {
            metrics.timings.connectStart = now
        }
        self.metrics = metrics
    }

    /// - Parameter age: of a moment on the loop's clock.
    mutating func note(_ step: OpeningStep, _ age: (MonotonicInstant) -> Duration) {
        let now = ContinuousClock.now
        switch step {
        case .connected(let resolvedAt, let local, let peer):
            if let resolvedAt {
                self.metrics?.timings.lookupEnd = now - age(resolvedAt)
                self.metrics?.timings.connectStart = now - age(resolvedAt)
            }
            self.metrics?.timings.connectEnd = now
            var facts = ConnectionFacts()
            facts.localAddress = local
            facts.peerAddress = peer
            self.metrics?.connection = facts
        case .securing:
            self.metrics?.timings.connectEnd = nil
            self.metrics?.timings.secureStart = now
        case .secured(let facts):
            self.metrics?.timings.secureEnd = now
            self.metrics?.timings.connectEnd = now
            self.metrics?.connection?.tls = facts
        case .requested(let bytes):
            self.metrics?.requestStart = now
            self.metrics?.requestEnd = now
            self.metrics?.requestHeadBytes = Int64(bytes)
        case .answered(let bytes):
            self.metrics?.responseStart = now
            self.metrics?.responseEnd = now
            self.metrics?.responseHeadBytes = Int64(bytes)
        case .failed: break
        }
        if let timings = self.metrics?.timings { self.metrics?.connection?.timings = timings }
    }

    /// What was measured, once.
    mutating func take() -> ExchangeMetrics? {
        defer { self.metrics = nil }
        return self.metrics
    }
}
