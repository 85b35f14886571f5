/// How an upstream stands.
package struct UpstreamStatus: Codable, Sendable, Equatable {
    /// In their order; none while no route leads to it.
    package var endpoints: [EndpointStatus]

    package init(endpoints: [EndpointStatus]) {
        self.endpoints = endpoints
    }
}
