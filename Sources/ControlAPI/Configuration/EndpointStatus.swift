/// How one endpoint of an upstream stands.
package struct EndpointStatus: Codable, Sendable, Equatable {
    package var url: String
    /// Under way and open.
    package var connections: Int
    /// Left out for a while, since it kept failing.
    package var ejected: Bool

    package init(url: String, connections: Int, ejected: Bool) {
        self.url = url
        self.connections = connections
        self.ejected = ejected
    }
}
