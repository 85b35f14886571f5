import Foundation

/// A request to load a URL: a value, independent of how and when it is loaded.
public struct URLRequest: @unchecked Sendable {
    public typealias CachePolicy = NSURLRequest.CachePolicy
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
    public typealias Attribution = NSURLRequest.Attribution

    /// The timeout of a request that names none, in seconds: 60.
    public static let standardTimeout: TimeInterval = 60

    /// `nil` only when set so; loading such a request fails with `URLError.unsupportedURL`.
    public var url: URL?
    /// How the stored answers of caches may be used.
    public var cachePolicy: CachePolicy
    /// The document that this request belongs to, which decides what is another site's cookie.
    public var mainDocumentURL: URL?
    public var networkServiceType: NetworkServiceType = .default
    /// Kept, and without effect on Linux, as the next two are.
    public var allowsCellularAccess = true
    public var allowsExpensiveNetworkAccess = true
    public var allowsConstrainedNetworkAccess = true
    public var allowsUltraConstrainedNetworkAccess = true
    /// Kept, and without effect: there is no HTTP/3 here.
    public var assumesHTTP3Capable = false
    public var attribution: Attribution = .developer
    /// Kept, and without effect.
    public var requiresDNSSECValidation = false
    /// Kept, and without effect: cookies are in one store.
    public var cookiePartitionIdentifier: String?
    /// Whether cookies of the store go along with the request, and those of the answer into the store.
    public var httpShouldHandleCookies = true
    /// Kept, and without effect: requests wait for their turn on a connection.
    public var httpShouldUsePipelining = false

    var fields = RequestFields()
    var body = RequestBody.none
    /// What the programmer wrote; `nil` where the session's own timeout applies.
    package private(set) var chosenTimeout: TimeInterval?
    /// What `URLProtocol` attaches to a request; no part of its equality.
    package var properties: [String: Any] = [:]
    private var method = "GET"

    /// A GET request with the session's own timeout.
    /// - Parameter url: made absolute.
    public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy) {
        self.url = url.absoluteURL
        self.cachePolicy = cachePolicy
    }

    /// - Parameter timeoutInterval: in seconds; goes before the session's timeout even when it is 60.
    public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval) {
        self.init(url: url, cachePolicy: cachePolicy)
        self.chosenTimeout = timeoutInterval
    }

    /// How long, in seconds, nothing may arrive and nothing leave before the load fails with `URLError.timedOut`.
    public var timeoutInterval: TimeInterval {
        get { self.chosenTimeout ?? Self.standardTimeout }
        set { self.chosenTimeout = newValue }
    }

    /// Six methods known to all are written in capitals whatever their case; others stay as they are. `nil` means GET.
    public var httpMethod: String? {
        get { self.method }
        set {
            let name = newValue ?? "GET"
            let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"]
            self.method = known.first { $0.isSameFieldName(as: name) } ?? name
        }
    }
}
