/// GET /livez, /readyz and /startupz.
package struct ServiceHealth: Codable, Sendable, Equatable {
    /// `ok`, or what is missing.
    package var status: String
    /// `starting`, `ready` or `draining`.
    package var phase: String

    package init(
        status: String, phase: String
    ) {
        self.status = status
        self.phase = phase
    }
}
