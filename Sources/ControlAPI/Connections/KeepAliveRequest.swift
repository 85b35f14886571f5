/// TCP keep-alive.
package struct KeepAliveRequest: Codable, Sendable, Equatable, StrictlyRead {
    /// Before the first probe.
    package var idleMs: Double?
    package var intervalMs: Double?
    package var probes: Int?
    /// How long sent data may go unacknowledged.
    package var userTimeoutMs: Double?

    package init(
        idleMs: Double? = nil, intervalMs: Double? = nil, probes: Int? = nil, userTimeoutMs: Double? = nil
    ) {
        self.idleMs = idleMs
        self.intervalMs = intervalMs
        self.probes = probes
        self.userTimeoutMs = userTimeoutMs
    }

    package static let members = [
        "idleMs", "intervalMs", "probes", "userTimeoutMs",
    ]
}
