import Foundation
import HTTPTransport
import StreamTransport

/// How a session loads. A session copies it: what is changed afterwards changes nothing there. Not to be changed by
/// several threads at a time.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    /// Of a background session; `nil` for all others.
    open private(set) var identifier: String?
    /// For requests that name none of their own.
    open var requestCachePolicy: NSURLRequest.CachePolicy = .useProtocolCachePolicy
    /// Seconds in which something must arrive or leave, unless the request names its own; 60.
    open var timeoutIntervalForRequest: TimeInterval = 60
    /// Seconds for a whole task, attempts and waiting included; 7 days.
    open var timeoutIntervalForResource: TimeInterval = 7 * 86_400
    /// What packets are marked with, for routers that look at it; a request that is not `default` goes before.
    open var networkServiceType: NSURLRequest.NetworkServiceType = .default

    /// Still to come: names are not validated, and where this is set no connection is made: tasks fail with
    /// `URLError.unsupportedURL`.
    open var requiresDNSSECValidation = false
    /// Kept, and without effect on Linux, as all up to `isDiscretionary` are.
    open var allowsCellularAccess = true
    open var allowsExpensiveNetworkAccess = true
    open var allowsConstrainedNetworkAccess = true
    open var allowsUltraConstrainedNetworkAccess = true
    open var waitsForConnectivity = false
    open var isDiscretionary = false

    /// For background sessions, as the next is.
    open var sharedContainerIdentifier: String?
    open var sessionSendsLaunchEvents = true

    /// By the keys `HTTPEnable`, `HTTPProxy`, `HTTPPort` and the like; `nil` for what the environment says by `http_proxy`,
    /// `https_proxy`, `all_proxy` and `no_proxy`. Proxies are still to come: where one is named, tasks that would go through
    /// it fail with `URLError.unsupportedURL`; an empty dictionary goes around it.
    open var connectionProxyDictionary: [AnyHashable: Any]?
    /// What is older is refused; TLS 1.2. Below that nothing is spoken: an older minimum means 1.2, and a maximum below it,
    /// or below the minimum, fails every secure connection.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t = .TLSv12
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t = .TLSv13
    /// Kept, and without effect.
    open var enablesEarlyData = false

    /// Kept, and without effect: requests wait for their turn on a connection.
    open var httpShouldUsePipelining = false
    /// Whether cookies of the store go along with requests that do not forbid it.
    open var httpShouldSetCookies = true
    /// Goes before the store's own policy.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    /// Added to requests that lack the name. What the loader itself sets is left out: `Connection`, `Host`,
    /// `Content-Length`, `Transfer-Encoding`, `WWW-Authenticate` and what begins with `Proxy-`. `Authorization` goes to the
    /// origin of the request alone, and not where a redirect leads away from it; a credential that answers a challenge
    /// takes its place.
    open var httpAdditionalHeaders: [AnyHashable: Any]?
    /// Connections to one host at a time, those of stream and WebSocket tasks aside; 6.
    open var httpMaximumConnectionsPerHost = 6
    /// `nil` for no cookies.
    open var httpCookieStorage: HTTPCookieStorage?
    /// `nil` for no stored credentials.
    open var urlCredentialStorage: URLCredentialStorage?
    /// `nil` for no cache.
    open var urlCache: URLCache?
    /// Kept, and without effect.
    open var shouldUseExtendedBackgroundIdleMode = false
    /// Subclasses of `URLProtocol`, asked in their order before the schemes that the session itself knows.
    open var protocolClasses: [AnyClass]? = []
    /// Kept, and without effect.
    open var multipathServiceType: MultipathServiceType = .none
    /// Kept, and without effect.
    open var usesClassicLoadingMode = true
    /// Ours. Whether a connection may go to an address of a host. Asked for each address of each connection, of redirects
    /// too, on any thread; where none is permitted the task fails with `URLError.cannotConnectToHost`. `nil` permits all.
    /// Not asked for Unix sockets, which the program names itself.
    public var permitsAddress: (@Sendable (ServerAddress, _ host: String) -> Bool)?
    /// Ours. Path of the Unix socket, at most 107 bytes, to which every connection for HTTP and WebSockets goes, whatever
    /// host its URL names; that host is in the request and in the TLS handshake. `nil`: to the host.
    public var unixSocketPath: String?
    /// Ours. Certificate authorities in PEM, at least one, that are trusted in place of the system's. `nil`: the system's.
    public var certificateAuthorities: Data?
    /// Looks names up, for HTTP alone; answers once, from any thread. `nil`: the system does.
    package var resolve: PoolSettings.Resolve?

    /// As `default`.
    public override init() {
        self.httpCookieStorage = .shared
        self.urlCredentialStorage = .shared
        self.urlCache = .shared
        super.init()
    }

    private convenience init(
        identifier: String?, cookies: HTTPCookieStorage?, credentials: URLCredentialStorage?, cache: URLCache?
    ) {
        self.init()
        self.identifier = identifier
        self.httpCookieStorage = cookies
        self.urlCredentialStorage = credentials
        self.urlCache = cache
    }

    /// A new one each time, with the stores that the program shares.
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration() }

    /// A new one each time, with stores of its own that are in memory alone.
    open class var ephemeral: URLSessionConfiguration {
        let folder = URL(fileURLWithPath: "/dev/null", isDirectory: true)
        return URLSessionConfiguration(
            identifier: nil, cookies: HTTPCookieStorage(), credentials: URLCredentialStorage(),
            cache: URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, directory: folder))
    }

    /// Sessions that outlive the program are not there yet: the tasks of a session with this fail.
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        URLSessionConfiguration(identifier: identifier, cookies: .shared, credentials: .shared, cache: nil)
    }

    /// As `background(withIdentifier:)`.
    @available(*, deprecated, renamed: "background(withIdentifier:)")
    open class func backgroundSessionConfiguration(_ identifier: String) -> URLSessionConfiguration {
        self.background(withIdentifier: identifier)
    }

    open override func copy() -> Any { self.copy(with: nil) }

    /// Independent of this one; the stores are the same.
    open func copy(with zone: NSZone?) -> Any {
        let copy = URLSessionConfiguration(
            identifier: self.identifier, cookies: self.httpCookieStorage, credentials: self.urlCredentialStorage,
            cache: self.urlCache)
        self.copyLoading(to: copy)
        self.copyAccess(to: copy)
        return copy
    }
}
