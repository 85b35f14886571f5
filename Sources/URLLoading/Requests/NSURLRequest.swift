import Foundation

/// The immutable object form of `URLRequest`.
open class NSURLRequest: NSObject, NSSecureCoding, NSCopying, NSMutableCopying {
    open class var supportsSecureCoding: Bool { true }

    /// The request as a value.
    package var value: URLRequest

    /// A request without a URL, with the session's timeout.
    public override convenience init() {
        self.init(url: Self.placeholder)
        self.value.url = nil
    }

    /// A request with the session's timeout.
    /// - Parameter url: made absolute.
    public convenience init(url: URL) {
        self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: URLRequest.standardTimeout)
        // Unless the initializer of a subclass chose a timeout, that of the session applies.
        if self.value.chosenTimeout == URLRequest.standardTimeout { self.value.chosenTimeout = nil }
    }

    /// - Parameter timeoutInterval: in seconds; takes precedence over the session's timeout.
    public init(url: URL, cachePolicy: CachePolicy, timeoutInterval: TimeInterval) {
        self.value = URLRequest(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
        super.init()
    }

    /// A convenience initializer, because a designated initializer that is not public would keep subclasses in other
    /// modules from inheriting `init(url:)`.
    package convenience init(_ value: URLRequest) {
        self.init(url: value.url ?? Self.placeholder)
        self.value = value
    }

    private static let placeholder = URL(fileURLWithPath: "/")

    public required init?(coder: NSCoder) {
        guard let value = RequestArchive.read(coder) else { return nil }
        self.value = value
        super.init()
    }

    open func encode(with coder: NSCoder) { RequestArchive.write(self.value, to: coder) }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { NSURLRequest(self.value) }
    open override func mutableCopy() -> Any { self.mutableCopy(with: nil) }
    open func mutableCopy(with zone: NSZone?) -> Any { NSMutableURLRequest(self.value) }

    open override func isEqual(_ object: Any?) -> Bool {
        if let other = object as? URLRequest { return other == self.value }
        return (object as? NSURLRequest).map { $0.value == self.value } ?? false
    }

    open override var hash: Int { self.value.hashValue }

    open override var description: String {
        "<\(type(of: self))> { URL: \(self.value.url?.absoluteString ?? "(null)") }"
    }

    open var url: URL? { self.value.url }
    open var mainDocumentURL: URL? { self.value.mainDocumentURL }
    open var cachePolicy: CachePolicy { self.value.cachePolicy }
    open var timeoutInterval: TimeInterval { self.value.timeoutInterval }
    open var networkServiceType: NetworkServiceType { self.value.networkServiceType }
    open var allowsCellularAccess: Bool { self.value.allowsCellularAccess }
    open var allowsExpensiveNetworkAccess: Bool { self.value.allowsExpensiveNetworkAccess }
    open var allowsConstrainedNetworkAccess: Bool { self.value.allowsConstrainedNetworkAccess }
    open var allowsUltraConstrainedNetworkAccess: Bool { self.value.allowsUltraConstrainedNetworkAccess }
    open var assumesHTTP3Capable: Bool { self.value.assumesHTTP3Capable }
    open var attribution: Attribution { self.value.attribution }
    open var requiresDNSSECValidation: Bool { self.value.requiresDNSSECValidation }
    open var allowsPersistentDNS: Bool { self.value.allowsPersistentDNS }
    open var cookiePartitionIdentifier: String? { self.value.cookiePartitionIdentifier }
    open var httpMethod: String? { self.value.httpMethod }
    open var allHTTPHeaderFields: [String: String]? { self.value.allHTTPHeaderFields }
    open var httpBody: Data? { self.value.httpBody }
    open var httpBodyStream: InputStream? { self.value.httpBodyStream }
    open var httpShouldHandleCookies: Bool { self.value.httpShouldHandleCookies }
    open var httpShouldUsePipelining: Bool { self.value.httpShouldUsePipelining }

    open func value(forHTTPHeaderField field: String) -> String? { self.value.value(forHTTPHeaderField: field) }
}

/// As in Foundation: subclasses may be mutable.
@available(*, unavailable)
extension NSURLRequest: @unchecked Sendable {}

extension NSURLRequest {
    /// How a request uses cached responses.
    public enum CachePolicy: UInt, Sendable {
        /// Follows RFC 9111.
        case useProtocolCachePolicy = 0
        /// Ignores the local cache.
        case reloadIgnoringLocalCacheData = 1
        /// Uses a cached response of any age; otherwise loads from the server.
        case returnCacheDataElseLoad = 2
        /// Uses a cached response of any age; otherwise fails with `URLError.resourceUnavailable`.
        case returnCacheDataDontLoad = 3
        /// Ignores the local cache, and asks caches on the way to do the same.
        case reloadIgnoringLocalAndRemoteCacheData = 4
        /// Uses a cached response after validating it with the server.
        case reloadRevalidatingCacheData = 5

        public static let reloadIgnoringCacheData = CachePolicy.reloadIgnoringLocalCacheData
    }

    /// The kind of traffic: a hint that selects the DSCP mark of packets (RFC 4594).
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

/// The mutable object form of `URLRequest`. Not thread-safe.
open class NSMutableURLRequest: NSURLRequest {
    open override var url: URL? {
        get { self.value.url }
        set { self.value.url = newValue }
    }

    open override var mainDocumentURL: URL? {
        get { self.value.mainDocumentURL }
        set { self.value.mainDocumentURL = newValue }
    }

    open override var cachePolicy: CachePolicy {
        get { self.value.cachePolicy }
        set { self.value.cachePolicy = newValue }
    }

    open override var timeoutInterval: TimeInterval {
        get { self.value.timeoutInterval }
        set { self.value.timeoutInterval = newValue }
    }

    open override var networkServiceType: NetworkServiceType {
        get { self.value.networkServiceType }
        set { self.value.networkServiceType = newValue }
    }

    open override var allowsCellularAccess: Bool {
        get { self.value.allowsCellularAccess }
        set { self.value.allowsCellularAccess = newValue }
    }

    open override var allowsExpensiveNetworkAccess: Bool {
        get { self.value.allowsExpensiveNetworkAccess }
        set { self.value.allowsExpensiveNetworkAccess = newValue }
    }

    open override var allowsConstrainedNetworkAccess: Bool {
        get { self.value.allowsConstrainedNetworkAccess }
        set { self.value.allowsConstrainedNetworkAccess = newValue }
    }

    open override var allowsUltraConstrainedNetworkAccess: Bool {
        get { self.value.allowsUltraConstrainedNetworkAccess }
        set { self.value.allowsUltraConstrainedNetworkAccess = newValue }
    }

    open override var assumesHTTP3Capable: Bool {
        get { self.value.assumesHTTP3Capable }
        set { self.value.assumesHTTP3Capable = newValue }
    }

    open override var attribution: Attribution {
        get { self.value.attribution }
        set { self.value.attribution = newValue }
    }

    open override var requiresDNSSECValidation: Bool {
        get { self.value.requiresDNSSECValidation }
        set { self.value.requiresDNSSECValidation = newValue }
    }

    open override var allowsPersistentDNS: Bool {
        get { self.value.allowsPersistentDNS }
        set { self.value.allowsPersistentDNS = newValue }
    }

    open override var cookiePartitionIdentifier: String? {
        get { self.value.cookiePartitionIdentifier }
        set { self.value.cookiePartitionIdentifier = newValue }
    }

    open override var httpMethod: String? {
        get { self.value.httpMethod }
        set { self.value.httpMethod = newValue }
    }

    open override var allHTTPHeaderFields: [String: String]? {
        get { self.value.allHTTPHeaderFields }
        set { self.value.allHTTPHeaderFields = newValue }
    }

    open override var httpBody: Data? {
        get { self.value.httpBody }
        set { self.value.httpBody = newValue }
    }

    open override var httpBodyStream: InputStream? {
        get { self.value.httpBodyStream }
        set { self.value.httpBodyStream = newValue }
    }

    open override var httpShouldHandleCookies: Bool {
        get { self.value.httpShouldHandleCookies }
        set { self.value.httpShouldHandleCookies = newValue }
    }

    open override var httpShouldUsePipelining: Bool {
        get { self.value.httpShouldUsePipelining }
        set { self.value.httpShouldUsePipelining = newValue }
    }

    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.value.setValue(value, forHTTPHeaderField: field)
    }

    open func addValue(_ value: String, forHTTPHeaderField field: String) {
        self.value.addValue(value, forHTTPHeaderField: field)
    }
}
