import Foundation

/// `URLRequest` as an object, for code that is written so. It does not change once made; `NSMutableURLRequest` does.
open class NSURLRequest: NSObject, NSSecureCoding, NSCopying, NSMutableCopying {
    open class var supportsSecureCoding: Bool { true }

    /// What the object stands for.
    package var value: URLRequest

    /// - Parameter url: made absolute.
    public convenience init(url: URL) {
        self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: 60)
    }

    /// - Parameter timeoutInterval: in seconds.
    public init(url: URL, cachePolicy: CachePolicy, timeoutInterval: TimeInterval) {
        self.value = URLRequest(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
        super.init()
    }

    /// By way of a placeholder, since a designated initializer that other modules do not see would keep their subclasses
    /// from inheriting `init(url:)`.
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
    open var attribution: Attribution { self.value.attribution }
    open var httpMethod: String? { self.value.httpMethod }
    open var allHTTPHeaderFields: [String: String]? { self.value.allHTTPHeaderFields }
    open var httpBody: Data? { self.value.httpBody }
    open var httpBodyStream: InputStream? { self.value.httpBodyStream }
    open var httpShouldHandleCookies: Bool { self.value.httpShouldHandleCookies }
    open var httpShouldUsePipelining: Bool { self.value.httpShouldUsePipelining }

    open func value(forHTTPHeaderField field: String) -> String? { self.value.value(forHTTPHeaderField: field) }
}

/// As in Foundation: subclasses may have state that changes.
@available(*, unavailable)
extension NSURLRequest: @unchecked Sendable {}
