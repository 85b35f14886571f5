/// GET /livez, /readyz and /startupz.
package struct ServiceHealth: Codable, Sendable, Equatable {
    /// `ok`, or the part that is not ready.
    package var status: String
    /// `starting`, `ready` or `draining`.
    package var phase: String

    package init(status: String, phase: String) {
        self.status = status
        self.phase = phase
    }
}

/// GET /version.
package struct ServiceVersion: Codable, Sendable, Equatable {
    package var name: String
    package var version: String
    /// Prefix of the paths of this API version.
    package var api: String

    package init(name: String, version: String, api: String) {
        self.name = name
        self.version = version
        self.api = api
    }
}
