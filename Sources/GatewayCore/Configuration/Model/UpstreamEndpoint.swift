/// One address of an upstream.
package struct UpstreamEndpoint: Sendable, Equatable {
    package var url: EndpointURL
    /// Its share beside the other endpoints, 1 to 1000.
    package var weight: Int

    package init(url: EndpointURL, weight: Int = 1) {
        self.url = url
        self.weight = weight
    }
}
