import GatewayCore
import StreamTransport
import Synchronization

/// Bounds how many requests are carried out at once, and how many each caller makes a second.
package final class RequestLimiter: Sendable {
    /// Callers whose rates are remembered; the one that asked least recently is forgotten.
    static let callerLimit = 1024

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

    /// From now on. Who was above the former rate begins anew.
    package func set(limit: Int, rate: Int?) {
        self.state.withLock { state in
            if state.rate != rate { state.buckets = [:] }
            (state.limit, state.rate) = (limit, rate)
        }
    }

    /// Takes a place for a request, to be given back with `leave`.
    /// - Throws: `ControlProblem` 429 above the caller's rate, 503 where as many run as may.
    package func acquire(for caller: String, now: MonotonicInstant) throws(ControlProblem) {
        let (isRunning, limit, rate) = self.state.withLock { (state: inout State) -> (Bool?, Int, Int?) in
            let isAllowed = Self.isWithinRate(caller, now, &state)
            let hasPlace = isAllowed && state.running < state.limit
            if hasPlace { state.running += 1 }
            return (isAllowed ? hasPlace : nil, state.limit, state.rate)
        }
        switch isRunning {
        case true?: return
        case false?:
            throw ControlProblem(
                503, "too-many-requests-at-once",
                "\(limit) requests are being carried out already; try again soon."
            )
            .retryable(after: 1)
        case nil:
            throw ControlProblem(
                429, "too-many-requests", "\(caller) may make \(rate ?? 0) requests a second; try again later."
            )
            .retryable(after: 1)
        }
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
