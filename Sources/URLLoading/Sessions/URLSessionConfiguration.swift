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

extension URLSessionConfiguration {
    func copyLoading(to copy: URLSessionConfiguration) {
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

    func copyAccess(to copy: URLSessionConfiguration) {
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
        copy.connectionProxyDictionary = self.connectionProxyDictionary
        copy.shouldUseExtendedBackgroundIdleMode = self.shouldUseExtendedBackgroundIdleMode
        copy.multipathServiceType = self.multipathServiceType
        copy.unixSocketPath = self.unixSocketPath
        copy.certificateAuthorities = self.certificateAuthorities
        copy.permitsAddress = self.permitsAddress
        copy.resolve = self.resolve
    }
}

extension URLSessionConfiguration {
    /// How several networks are used at a time.
    public enum MultipathServiceType: Int, Sendable {
        case none = 0
        case handover = 1
        case interactive = 2
        case aggregate = 3
    }

    /// `tlsMinimumSupportedProtocolVersion` in older words; an unknown version changes nothing.
    @available(*, deprecated, renamed: "tlsMinimumSupportedProtocolVersion")
    public var tlsMinimumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(self.tlsMinimumSupportedProtocolVersion) }
        set { self.tlsMinimumSupportedProtocolVersion = newValue.version ?? self.tlsMinimumSupportedProtocolVersion }
    }

    /// `tlsMaximumSupportedProtocolVersion` in older words; an unknown version changes nothing.
    @available(*, deprecated, renamed: "tlsMaximumSupportedProtocolVersion")
    public var tlsMaximumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(self.tlsMaximumSupportedProtocolVersion) }
        set { self.tlsMaximumSupportedProtocolVersion = newValue.version ?? self.tlsMaximumSupportedProtocolVersion }
    }
}

extension URLSessionConfiguration {
    /// An address that a connection may be made to, before it is made.
    public struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
        package let socketAddress: SocketAddress

        package init(_ address: SocketAddress) {
            self.socketAddress = address
        }

        /// 4 bytes of an IPv4 address, 16 of an IPv6 address, in the order of the wire. An IPv4 address that is mapped into
        /// IPv6 (`::ffff:192.0.2.1`) has 4.
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

        /// This machine: 127.0.0.0/8, ::1, and the unspecified address, by which Linux reaches it too.
        public var isLoopback: Bool {
            let bytes = self.bytes
            if bytes.count == 4 { return bytes[0] == 127 || bytes.allSatisfy { $0 == 0 } }
            return bytes.dropLast().allSatisfy { $0 == 0 } && (bytes.last ?? 2) < 2
        }

        /// Inside of one network: 169.254.0.0/16 and fe80::/10, where clouds have their metadata services.
        public var isLinkLocal: Bool {
            let bytes = self.bytes
            return bytes.count == 4
                ? bytes[0] == 169 && bytes[1] == 254 : bytes.count == 16 && bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
        }

        /// For private networks: 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918) and fc00::/7 (RFC 4193).
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

/// Versions of TLS as older programs name them.
public enum SSLProtocol: Int32, Sendable {
    case sslProtocolUnknown = 0
    case tlsProtocol1 = 4
    case tlsProtocol11 = 7
    case tlsProtocol12 = 8
    case tlsProtocol13 = 10

    init(_ version: tls_protocol_version_t) {
        self =
            switch version {
            case .TLSv10: .tlsProtocol1
            case .TLSv11: .tlsProtocol11
            case .TLSv12: .tlsProtocol12
            case .TLSv13: .tlsProtocol13
            case .DTLSv10, .DTLSv12: .sslProtocolUnknown
            }
    }

    var version: tls_protocol_version_t? {
        switch self {
        case .sslProtocolUnknown: nil
        case .tlsProtocol1: .TLSv10
        case .tlsProtocol11: .TLSv11
        case .tlsProtocol12: .TLSv12
        case .tlsProtocol13: .TLSv13
        }
    }
}

/// Versions of TLS by their numbers on the wire.
public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv10 = 0x0301
    case TLSv11 = 0x0302
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
    case DTLSv10 = 0xFEFF
    case DTLSv12 = 0xFEFD
}
