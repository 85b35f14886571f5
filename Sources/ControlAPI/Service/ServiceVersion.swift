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
