/// GET /livez, /readyz and /startupz.
package struct ServiceHealth: Codable, Sendable, Equatable {
    /// `ok`, or the missing part.
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

/// GET /version.
package struct ServiceVersion: Codable, Sendable, Equatable {
    package var name: String
    package var version: String
    /// The prefix of its paths.
    package var api: String

    package init(
        name: String, version: String, api: String
    ) {
        self.name = name
        self.version = version
        self.api = api
    }
}
