extension NSURLRequest {
    /// How a request uses the answers that caches keep.
    public enum CachePolicy: UInt, Sendable {
        /// What RFC 9111 says.
        case useProtocolCachePolicy = 0
        /// As if nothing were kept here.
        case reloadIgnoringLocalCacheData = 1
        /// What is kept here, however old; else from the server.
        case returnCacheDataElseLoad = 2
        /// What is kept here, however old; else `URLError.resourceUnavailable`.
        case returnCacheDataDontLoad = 3
        /// As if nothing were kept here, and caches on the way are told so too.
        case reloadIgnoringLocalAndRemoteCacheData = 4
        /// What is kept here, once the server has said that it still holds.
        case reloadRevalidatingCacheData = 5

        public static let reloadIgnoringCacheData = CachePolicy.reloadIgnoringLocalCacheData
    }

    /// What the traffic is for: a hint, by which packets are marked (RFC 4594).
    public enum NetworkServiceType: UInt, Sendable {
        case `default` = 0
        case voip = 1
        case video = 2
        case background = 3
        case voice = 4
        case responsiveData = 6
        case avStreaming = 8
        case responsiveAV = 9
        case callSignaling = 11

        public static let networkServiceTypeCallSignaling = NetworkServiceType.callSignaling
    }

    /// Who caused the request.
    public enum Attribution: UInt, Sendable {
        case developer = 0
        case user = 1
    }
}
