import BackgroundTransfers
import Foundation
import HTTPTransport
import StreamTransport

/// The settings of a session. A session copies them: later changes have no effect on it. Not safe for changes from
/// several threads at a time.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {  // Mutable; a session copies it.
    /// Identifies a background session; otherwise `nil`.
    open private(set) var identifier: String?
    /// For requests with `useProtocolCachePolicy`.
    open var requestCachePolicy: NSURLRequest.CachePolicy = .useProtocolCachePolicy
    /// Idle timeout in seconds, by default 60; a request may have its own.
    open var timeoutIntervalForRequest: TimeInterval = 60
    /// Timeout of a whole task in seconds, redirects and waiting included; by default 7 days.
    open var timeoutIntervalForResource: TimeInterval = 7 * 86_400
    /// The DSCP mark of packets; a request's own type other than `default` takes precedence.
    open var networkServiceType: NSURLRequest.NetworkServiceType = .default

    /// Whether names are only used if the name server has authenticated their addresses with DNSSEC; otherwise tasks fail
    /// with `URLError.dnsLookupFailed`. The word of a name server counts if it is on this machine, or if `/etc/resolv.conf`
    /// says `options trust-ad`. Files such as `/etc/hosts` are not consulted. Does not apply to addresses and to the names
    /// of proxies. Default: false.
    open var requiresDNSSECValidation = false
    /// Whether connections may use modems, and other interfaces that the environment variable `URLLOADING_INTERFACES`
    /// declares as `cellular`; of two settings, the session's and the request's, the stricter one counts. Other interfaces
    /// that lead to the server are used instead. Without one the task fails with `URLError.notConnectedToInternet`, whose
    /// `networkUnavailableReason` says why. Default: true.
    ///
    /// The variable has entries such as `wwan0=cellular usb*=expensive eth1=constrained,expensive`. Cellular interfaces are
    /// expensive as well. It is read once.
    open var allowsCellularAccess = true
    /// As `allowsCellularAccess`, of interfaces that are `expensive`.
    open var allowsExpensiveNetworkAccess = true
    /// As `allowsCellularAccess`, of interfaces that are `constrained`.
    open var allowsConstrainedNetworkAccess = true
    /// Stored without effect: no interface is known to be of that kind.
    open var allowsUltraConstrainedNetworkAccess = true
    /// Whether a task waits where this machine has no network that leads to the server, or none that the task may use,
    /// instead of failing with `URLError.notConnectedToInternet`. It connects as soon as there is one. Only the timeout for
    /// the resource runs meanwhile; once a connection was established the task does not wait any more. Default: false.
    open var waitsForConnectivity = false
    /// Whether the transfers of a background session wait for a network that is not metered, for mains power and for a load
    /// below 0.75 per processor.
    open var isDiscretionary = false

    /// Stored without effect.
    open var sharedContainerIdentifier: String?
    /// Whether the daemon starts the program when all transfers of a background session have ended, or when one needs an
    /// answer, and no program has the session.
    open var sessionSendsLaunchEvents = true
    /// Extension to Foundation. How it starts the program; `nil` means this program with its arguments and environment.
    public var launchCommand: BackgroundLaunchCommand?
    /// Extension to Foundation. Path of the executable `sluice`, whose daemon background sessions need. `nil` means the
    /// environment variable `SLUICE_TRANSFERD` or, without it, `PATH`. Not used while a daemon runs, nor where the service
    /// manager starts it.
    public var transferDaemonPath: String?

    /// Proxies by CFNetwork's keys, the constants `kCFNetworkProxies…`, `kCFProxy…` and `kCFStreamPropertySOCKS…`:
    /// `HTTPEnable`, `HTTPProxy` and `HTTPPort`, the same with `HTTPS` and `SOCKS`, `ExceptionsList`,
    /// `ExcludeSimpleHostnames`, `kCFProxyUsernameKey` and others. The proxy is a host or a URL, whose scheme is `http`,
    /// `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. The certificate of an `https` proxy is verified as a server's
    /// is, and the delegate asked for server trust in the proxy's protection space.
    ///
    /// With `ProxyAutoConfigEnable` a script chooses instead (PAC): `ProxyAutoConfigURLString` is its URL, or
    /// `ProxyAutoConfigJavaScript` the script itself, at most 1 MiB. It runs for at most 2 s a URL, in 32 MiB. It is loaded
    /// without a proxy when it is first needed, and again after an hour. Needs the package libduktape207.
    ///
    /// `nil`, the default, uses the environment variables `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, in lower
    /// or else in upper case; `HTTP_PROXY` not where `REQUEST_METHOD` is set, as for CGI programs. An empty variable, and an
    /// empty dictionary, mean direct connections. A setting that cannot be followed, or a script that fails, fails tasks with
    /// `URLError.unsupportedURL`.
    open var connectionProxyDictionary: [AnyHashable: Any]?
    /// Proxies that are tried in this order, instead of those of `connectionProxyDictionary` and of the environment. A proxy
    /// that could not be reached is tried last for five minutes. Default: none.
    open var proxyConfigurations: [ProxyConfiguration] = []
    /// By default TLS 1.2, the oldest version supported: an older minimum means 1.2. A maximum below 1.2 or below the
    /// minimum fails every secure connection.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t = .TLSv12
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t = .TLSv13
    /// Whether GET and HEAD requests without a body are sent with the first message of TLS 1.3, on sessions that are resumed
    /// with servers that permit it (RFC 8470). A response comes a round trip earlier; but an attacker can make the server get
    /// such a request more than once. A request that the server does not take, or answers with 425, is sent again behind the
    /// handshake. Default: false.
    open var enablesEarlyData = false

    /// Whether requests are pipelined (RFC 9112 §9.3.2): GET, HEAD, OPTIONS and TRACE without a body, over HTTP/1.1, when all
    /// connections to the host are busy; at most 6 on a connection. If the server closes it, or a request in between is
    /// cancelled, those without a response are sent again, not pipelined. Default: false.
    open var httpShouldUsePipelining = false
    /// Whether requests send the storage's cookies, unless the request itself forbids it.
    open var httpShouldSetCookies = true
    /// Takes precedence over the storage's own policy.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy = .onlyFromMainDocumentDomain
    /// Added to requests that lack a field of this name. Fields that the transport sets are ignored: `Connection`,
    /// `Host`, `Content-Length`, `Transfer-Encoding`, `WWW-Authenticate` and those starting with `Proxy-`.
    /// `Authorization` is sent to the origin of the original request only, not after a redirect to another; a
    /// credential that answers a challenge replaces it.
    open var httpAdditionalHeaders: [AnyHashable: Any]?
    /// Limit for simultaneous HTTP connections to one host; by default 6. Does not apply to stream and WebSocket tasks. An
    /// HTTP/2 connection counts as one, whatever the number of its streams.
    open var httpMaximumConnectionsPerHost = 6
    /// `nil` for no cookies.
    open var httpCookieStorage: HTTPCookieStorage?
    /// `nil` for no stored credentials.
    open var urlCredentialStorage: URLCredentialStorage?
    /// `nil` for no cache.
    open var urlCache: URLCache?
    /// Stored without effect.
    open var shouldUseExtendedBackgroundIdleMode = false
    /// Subclasses of `URLProtocol`, tried in this order before the built-in schemes.
    open var protocolClasses: [AnyClass]? = []
    /// Whether connections use several networks at a time by Multipath TCP (RFC 8684), with servers that know it; the
    /// kernel's own settings decide on the networks, so that all values but `none` mean the same. Where the kernel does not
    /// have it, plain TCP is used. Default: none.
    open var multipathServiceType: MultipathServiceType = .none
    /// Stored without effect.
    open var usesClassicLoadingMode = true
    /// Extension to Foundation. Whether a connection may be made to an address of a host. Called for each address of
    /// each connection, including redirects, on any thread. If no address is permitted, the task fails with
    /// `URLError.cannotConnectToHost`. `nil` permits all. Not called for Unix sockets, nor for a name that a proxy
    /// resolves; the proxy's own addresses are checked.
    public var permitsAddress: (@Sendable (ServerAddress, _ host: String) -> Bool)?
    /// Extension to Foundation. Path of a Unix socket, at most 107 bytes, to which all HTTP and WebSocket connections
    /// go instead of the URL's host. The Host field and the TLS handshake still name that host.
    public var unixSocketPath: String?
    /// Extension to Foundation. Whether `http` URLs are loaded over HTTP/2, without negotiation (RFC 9113 §3.3): loads
    /// from servers that do not speak it fail. `https` needs no setting.
    public var assumesHTTP2 = false
    /// Extension to Foundation. Whether upload tasks announce that they can be continued after an interruption, and are
    /// continued if the server can do so (draft-ietf-httpbis-resumable-upload). Default: `true`, as on Apple's platforms.
    public var resumesUploads = true
    /// Whether an upload that is cancelled is deleted at its server. Not where another task may continue it.
    package var deletesCancelledUploads = true
    /// Extension to Foundation. Certificate authorities in PEM, at least one, to trust instead of the system's.
    public var certificateAuthorities: Data?
    /// Extension to Foundation. Hosts that may get a Kerberos ticket of the process's user when they or their proxies ask for
    /// Negotiate and neither the delegate nor the credential storage decides: names such as `intranet.example.org`, or
    /// `.example.org` for a domain with all its subdomains. Empty by default: a ticket says who the user is.
    public var ticketHosts: [String] = []
    /// Where a background session finds its daemon; `nil` for the folders of the user.
    package var transferFolders: TransferFolders?
    /// Environment variables that name proxies; `nil` reads those of the process.
    package var proxyVariables: [String: String]?
    /// Of a background session, which has no `permitsAddress`: see `SessionSettings.permittedTargets`.
    package var permittedTargets: [String]?
    /// Resolves host names for HTTP; answers once, from any thread. `nil` uses the system's resolver.
    package var resolve: ConnectAttempt.Resolve?
    /// As `resolve`, of every kind of task with `requiresDNSSECValidation`.
    package var resolveAuthenticated: ConnectAttempt.Resolve?
    /// Does the session's work, and has all its connections: with a loop on a simulated network, whole sessions run in
    /// virtual time. Bodies that are streams or files, and downloads, still use threads of their own. `nil` chooses one of
    /// the shared loops.
    package var loop: Loop?

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

    /// A new configuration with the shared storages.
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration() }

    /// A new configuration with its own storages, in memory only.
    open class var ephemeral: URLSessionConfiguration {
        let folder = URL(fileURLWithPath: "/dev/null", isDirectory: true)
        return URLSessionConfiguration(
            identifier: nil, cookies: HTTPCookieStorage(), credentials: URLCredentialStorage(),
            cache: URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, directory: folder))
    }

    /// Downloads, and uploads of files, that outlive the program: the daemon `sluice transferd` carries them
    /// out. A later session with the same identifier gets the messages that were not delivered.
    ///
    /// Creating the session attaches it to the user's daemon, which is started if necessary, and waits for that up to 5 s.
    /// Without it, and while another session has the identifier, the tasks fail with
    /// `URLError.backgroundSessionWasDisconnected` and `URLError.backgroundSessionInUseByAnotherProcess`.
    /// The session exists until it is invalidated.
    /// - Parameter identifier: 1 to 80 bytes, unique among the user's programs.
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        URLSessionConfiguration(identifier: identifier, cookies: .shared, credentials: .shared, cache: nil)
    }

    /// As `background(withIdentifier:)`.
    @available(*, deprecated, renamed: "background(withIdentifier:)")
    open class func backgroundSessionConfiguration(_ identifier: String) -> URLSessionConfiguration {
        self.background(withIdentifier: identifier)
    }

    open override func copy() -> Any { self.copy(with: nil) }

    /// An independent copy with the same storages.
    open func copy(with zone: NSZone?) -> Any {
        let copy = URLSessionConfiguration(
            identifier: self.identifier, cookies: self.httpCookieStorage, credentials: self.urlCredentialStorage,
            cache: self.urlCache)
        self.copyLoading(to: copy)
        self.copyAccess(to: copy)
        return copy
    }

    private func copyLoading(to copy: URLSessionConfiguration) {
        copy.requestCachePolicy = self.requestCachePolicy
        copy.timeoutIntervalForRequest = self.timeoutIntervalForRequest
        copy.timeoutIntervalForResource = self.timeoutIntervalForResource
        copy.tlsMinimumSupportedProtocolVersion = self.tlsMinimumSupportedProtocolVersion
        copy.tlsMaximumSupportedProtocolVersion = self.tlsMaximumSupportedProtocolVersion
        copy.enablesEarlyData = self.enablesEarlyData
        copy.httpShouldUsePipelining = self.httpShouldUsePipelining
        copy.httpShouldSetCookies = self.httpShouldSetCookies
        copy.httpCookieAcceptPolicy = self.httpCookieAcceptPolicy
        copy.httpAdditionalHeaders = self.httpAdditionalHeaders
        copy.httpMaximumConnectionsPerHost = self.httpMaximumConnectionsPerHost
        copy.protocolClasses = self.protocolClasses
        copy.usesClassicLoadingMode = self.usesClassicLoadingMode
    }

    private func copyAccess(to copy: URLSessionConfiguration) {
        copy.networkServiceType = self.networkServiceType
        copy.allowsCellularAccess = self.allowsCellularAccess
        copy.allowsExpensiveNetworkAccess = self.allowsExpensiveNetworkAccess
        copy.allowsConstrainedNetworkAccess = self.allowsConstrainedNetworkAccess
        copy.allowsUltraConstrainedNetworkAccess = self.allowsUltraConstrainedNetworkAccess
        copy.requiresDNSSECValidation = self.requiresDNSSECValidation
        copy.waitsForConnectivity = self.waitsForConnectivity
        copy.isDiscretionary = self.isDiscretionary
        copy.sharedContainerIdentifier = self.sharedContainerIdentifier
        copy.sessionSendsLaunchEvents = self.sessionSendsLaunchEvents
        copy.launchCommand = self.launchCommand
        copy.transferDaemonPath = self.transferDaemonPath
        copy.transferFolders = self.transferFolders
        copy.proxyVariables = self.proxyVariables
        copy.connectionProxyDictionary = self.connectionProxyDictionary
        copy.proxyConfigurations = self.proxyConfigurations
        copy.shouldUseExtendedBackgroundIdleMode = self.shouldUseExtendedBackgroundIdleMode
        copy.multipathServiceType = self.multipathServiceType
        copy.unixSocketPath = self.unixSocketPath
        copy.assumesHTTP2 = self.assumesHTTP2
        copy.resumesUploads = self.resumesUploads
        copy.deletesCancelledUploads = self.deletesCancelledUploads
        copy.certificateAuthorities = self.certificateAuthorities
        copy.ticketHosts = self.ticketHosts
        copy.permitsAddress = self.permitsAddress
        copy.permittedTargets = self.permittedTargets
        copy.resolve = self.resolve
        copy.resolveAuthenticated = self.resolveAuthenticated
        copy.loop = self.loop
    }
}

extension URLSessionConfiguration {
    /// How a connection uses several networks.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }

    /// As `tlsMinimumSupportedProtocolVersion`. Setting an unknown version has no effect.
    @available(*, deprecated, renamed: "tlsMinimumSupportedProtocolVersion")
    public var tlsMinimumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(self.tlsMinimumSupportedProtocolVersion) }
        set { self.tlsMinimumSupportedProtocolVersion = newValue.version ?? self.tlsMinimumSupportedProtocolVersion }
    }

    /// As `tlsMaximumSupportedProtocolVersion`. Setting an unknown version has no effect.
    @available(*, deprecated, renamed: "tlsMaximumSupportedProtocolVersion")
    public var tlsMaximumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(self.tlsMaximumSupportedProtocolVersion) }
        set { self.tlsMaximumSupportedProtocolVersion = newValue.version ?? self.tlsMaximumSupportedProtocolVersion }
    }

    /// An address that a connection is about to be made to.
    public struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
        package let socketAddress: SocketAddress

        package init(_ address: SocketAddress) {
            self.socketAddress = address
        }

        /// The 4 bytes of an IPv4 address or the 16 of an IPv6 address, in network order. An IPv4-mapped address
        /// (`::ffff:192.0.2.1`) has 4.
        public var bytes: [UInt8] {
            switch self.socketAddress {
            case .ipv4(let address, _): return Self.bytes(address)
            case .ipv6(0, let low, _, _) where low >> 32 == 0xFFFF:
                return Self.bytes(UInt32(truncatingIfNeeded: low))
            case .ipv6(let high, let low, _, _): return Self.bytes(high) + Self.bytes(low)
            case .unix: return []
            }
        }

        public var port: Int { Int(self.socketAddress.port ?? 0) }

        /// 127.0.0.0/8, ::1, and the unspecified address, which Linux connects to the local host.
        public var isLoopback: Bool {
            let bytes = self.bytes
            if bytes.count == 4 { return bytes[0] == 127 || bytes.allSatisfy { $0 == 0 } }
            return bytes.dropLast().allSatisfy { $0 == 0 } && (bytes.last ?? 2) < 2
        }

        /// 169.254.0.0/16 and fe80::/10, which include the metadata services of clouds.
        public var isLinkLocal: Bool {
            let bytes = self.bytes
            return bytes.count == 4
                ? bytes[0] == 169 && bytes[1] == 254 : bytes.count == 16 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
        }

        /// 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918) and fc00::/7 (RFC 4193).
        public var isPrivate: Bool {
            let bytes = self.bytes
            guard bytes.count == 4 else { return bytes.count == 16 && bytes[0] & 0xFE == 0xFC }
            return bytes[0] == 10 || bytes[0] == 172 && bytes[1] & 0xF0 == 16 || bytes[0] == 192 && bytes[1] == 168
        }

        /// `192.0.2.1:443` or `[2001:db8::1]:443`.
        public var description: String { self.socketAddress.description }

        private static func bytes(_ number: some FixedWidthInteger) -> [UInt8] {
            (1...number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> (number.bitWidth - $0 * 8)) }
        }
    }
}

/// TLS versions of the deprecated API.
public enum SSLProtocol: Int32, Sendable {
    case sslProtocolUnknown = 0
    case tlsProtocol1 = 4
    case tlsProtocol11 = 7
    case tlsProtocol12 = 8
    case tlsProtocol13 = 10

    fileprivate init(_ version: tls_protocol_version_t) {
        self =
            switch version {
            case .TLSv10: .tlsProtocol1
            case .TLSv11: .tlsProtocol11
            case .TLSv12: .tlsProtocol12
            case .TLSv13: .tlsProtocol13
            case .DTLSv10, .DTLSv12: .sslProtocolUnknown
            }
    }

    fileprivate var version: tls_protocol_version_t? {
        switch self {
        case .sslProtocolUnknown: nil
        case .tlsProtocol1: .TLSv10
        case .tlsProtocol11: .TLSv11
        case .tlsProtocol12: .TLSv12
        case .tlsProtocol13: .TLSv13
        }
    }
}

/// TLS versions by their numbers on the wire.
public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv10 = 0x0301
    case TLSv11 = 0x0302
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
    case DTLSv10 = 0xFEFF
    case DTLSv12 = 0xFEFD
}
