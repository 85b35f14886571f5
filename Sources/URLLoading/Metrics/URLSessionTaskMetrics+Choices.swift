extension URLSessionTaskMetrics {
    /// Where a resource came from.
    public enum ResourceFetchType: Int, Sendable {
        /// A `data` or `file` URL, or a `URLProtocol`.
        case unknown = 0
        case networkLoad = 1
        /// Never the case here.
        case serverPush = 2
        case localCache = 3
    }

    /// How a name was looked up.
    public enum DomainResolutionProtocol: Int, Sendable {
        /// Always the case here: names are looked up by the system, which does not tell.
        case unknown = 0
        case udp = 1
        case tcp = 2
        case tls = 3
        case https = 4
    }
}
