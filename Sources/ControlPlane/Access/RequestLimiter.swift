import GatewayConfiguration
import GatewayCore
import StreamTransport
import Synchronization

/// Limits concurrent requests, and the request rate of each caller.
package final class RequestLimiter: Sendable {
    /// Callers with a token bucket; beyond it, the least recently active one is dropped.
    private static let callerLimit = 1024

    private struct State {
        var limit: Int
        var rate: Int?
        var running = 0
        var buckets: [String: (bucket: TokenBucket, used: MonotonicInstant)] = [:]
    }

    private let state: Mutex<State>

    package init(limit: Int, rate: Int?) {
        self.state = Mutex(State(limit: limit, rate: rate))
    }

    /// Changes the limits. A new rate refills every caller's bucket.
    package func set(limit: Int, rate: Int?) {
        self.state.withLock { state in
            if state.rate != rate { state.buckets = [:] }
            (state.limit, state.rate) = (limit, rate)
        }
    }

    /// Admits a request; each successful call must be followed by `release()`.
    /// - Throws: `ControlProblem` 429 above the caller's rate, 503 at the limit of concurrent requests.
    package func acquire(for caller: String, now: MonotonicInstant) throws(ControlProblem) {
        let problem = self.state.withLock { state -> ControlProblem? in
            guard Self.isWithinRate(caller, now, &state) else {
                return ControlProblem(
                    429, "too-many-requests",
                    "\(caller) may make \(state.rate ?? 0) requests a second; try again later.")
            }
            guard state.running < state.limit else {
                return ControlProblem(
                    503, "too-many-requests-at-once",
                    "The limit of \(state.limit) concurrent requests is reached; try again soon.")
            }
            state.running += 1
            return nil
        }
        if let problem { throw problem.retryable(after: 1) }
    }

    package func release() {
        self.state.withLock { $0.running -= 1 }
    }

    private static func isWithinRate(_ caller: String, _ now: MonotonicInstant, _ state: inout State) -> Bool {
        guard let rate = state.rate else { return true }
        var entry = state.buckets[caller] ?? (TokenBucket(AcceptRate(perSecond: rate, burst: rate)), now)
        entry.used = now
        let isAllowed = entry.bucket.take(at: now)
        state.buckets[caller] = entry
        if state.buckets.count > Self.callerLimit,
            let oldest = state.buckets.min(by: { $0.value.used < $1.value.used })?.key
        {
            state.buckets[oldest] = nil
        }
        return isAllowed
    }
}
