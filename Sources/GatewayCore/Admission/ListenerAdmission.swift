import GatewayConfiguration
import StreamTransport

/// Connections of one listener and its accept rate.
struct ListenerAdmission: Sendable {
    var limits: ListenerLimits {
        didSet {
            if oldValue.acceptRate != self.limits.acceptRate { self.bucket = TokenBucket(self.limits.acceptRate) }
        }
    }
    /// The listener was removed from the configuration; dropped with its last connection.
    var isRetired = false
    /// Accepted connections whose client is not known yet.
    var arriving = 0
    private(set) var connections = 0
    private(set) var clients: [ClientKey: Int] = [:]
    private var bucket: TokenBucket

    /// Whether the listener still accepts or has connections.
    var isInUse: Bool { self.connections > 0 || self.arriving > 0 }

    init(_ limits: ListenerLimits) {
        self.limits = limits
        self.bucket = TokenBucket(limits.acceptRate)
    }

    /// Admits the connection, or returns why not; a refusal takes no token.
    mutating func admit(_ client: ClientKey?, tableLimit: Int, at now: MonotonicInstant) -> AdmissionRefusal? {
        guard self.connections < self.limits.maximumConnections else { return .listenerLimit }
        if let client {
            let count = self.clients[client] ?? 0
            guard count < self.limits.maximumConnectionsPerClient else { return .clientLimit }
            guard count > 0 || self.clients.count < tableLimit else { return .clientTableFull }
        }
        guard self.bucket.take(at: now) else { return .acceptRate }
        self.connections += 1
        if let client { self.clients[client, default: 0] += 1 }
        return nil
    }

    /// - Returns: whether a connection was counted.
    mutating func release(_ client: ClientKey?) -> Bool {
        guard self.connections > 0 else { return false }
        self.connections -= 1
        guard let client, let count = self.clients[client] else { return true }
        self.clients[client] = count > 1 ? count - 1 : nil
        return true
    }
}

/// A token bucket: tokens are refilled evenly, up to `burst`.
///
/// Kept as one instant, that at which the bucket would be full again (the generic cell rate algorithm, ITU-T I.371), so
/// it never drifts.
package struct TokenBucket: Hashable, Sendable {
    /// Nanoseconds to refill one token.
    private let interval: Int64
    /// Nanoseconds to refill the whole bucket.
    private let span: Int64
    private var fullAt: Int64 = .min

    /// - Parameter rate: values below 1 count as 1.
    package init(_ rate: AcceptRate) {
        let perSecond = Int64(clamping: min(max(rate.perSecond, 1), 1_000_000_000))
        self.interval = 1_000_000_000 / perSecond
        self.span = self.interval * Int64(clamping: min(max(rate.burst, 1), 1_000_000_000))
    }

    /// - Returns: whether a token was taken.
    package mutating func take(at now: MonotonicInstant) -> Bool {
        let start = max(self.fullAt, now.nanoseconds)
        let (next, overflow) = start.addingReportingOverflow(self.interval)
        guard !overflow, next &- now.nanoseconds <= self.span else { return false }
        self.fullAt = next
        return true
    }
}
