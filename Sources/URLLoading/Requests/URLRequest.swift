import Foundation
import StreamTransport
import WireText

/// A request to load a URL.
public struct URLRequest: @unchecked Sendable {  // Its stream and `properties` are the program's, as in Foundation.
    public typealias CachePolicy = NSURLRequest.CachePolicy
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
    public typealias Attribution = NSURLRequest.Attribution

    /// The timeout of a request without its own, in seconds: 60.
    public static let standardTimeout: TimeInterval = 60

    /// Shared by copies of the request until one changes it: a task and its load copy their requests often.
    private var storage: Storage

    /// A GET request with the session's timeout.
    /// - Parameter url: made absolute.
    public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy) {
        self.storage = Storage(Values(url: url.absoluteURL, cachePolicy: cachePolicy))
    }

    /// - Parameter timeoutInterval: in seconds; takes precedence over the session's timeout even if it is 60.
    public init(url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval) {
        self.init(url: url, cachePolicy: cachePolicy)
        self.storage.values.chosenTimeout = timeoutInterval
    }

    /// The storage for a change, which no copy of the request sees.
    private var owned: Storage {
        mutating get {
            if !isKnownUniquelyReferenced(&self.storage) { self.storage = Storage(self.storage.values) }
            return self.storage
        }
    }

    /// `nil` only if set to `nil`; such a request fails with `URLError.unsupportedURL`.
    public var url: URL? {
        get { self.storage.values.url }
        set { self.owned.values.url = newValue }
    }

    public var cachePolicy: CachePolicy {
        get { self.storage.values.cachePolicy }
        set { self.owned.values.cachePolicy = newValue }
    }

    public var networkServiceType: NetworkServiceType {
        get { self.storage.values.networkServiceType }
        set { self.owned.values.networkServiceType = newValue }
    }

    /// As `URLSessionConfiguration.allowsCellularAccess`, as are the next two; the stricter setting counts.
    public var allowsCellularAccess: Bool {
        get { !self.storage.values.restrictions.contains(.noCellular) }
        set { self.owned.values.restrictions.set(.noCellular, to: !newValue) }
    }

    public var allowsExpensiveNetworkAccess: Bool {
        get { !self.storage.values.restrictions.contains(.noExpensive) }
        set { self.owned.values.restrictions.set(.noExpensive, to: !newValue) }
    }

    public var allowsConstrainedNetworkAccess: Bool {
        get { !self.storage.values.restrictions.contains(.noConstrained) }
        set { self.owned.values.restrictions.set(.noConstrained, to: !newValue) }
    }

    /// Stored without effect.
    public var allowsUltraConstrainedNetworkAccess: Bool {
        get { self.storage.values.allowsUltraConstrainedNetworkAccess }
        set { self.owned.values.allowsUltraConstrainedNetworkAccess = newValue }
    }

    var restrictions: NetworkRestrictions {
        get { self.storage.values.restrictions }
        set { self.owned.values.restrictions = newValue }
    }

    /// Stored without effect: HTTP/3 is not supported.
    public var assumesHTTP3Capable: Bool {
        get { self.storage.values.assumesHTTP3Capable }
        set { self.owned.values.assumesHTTP3Capable = newValue }
    }

    public var attribution: Attribution {
        get { self.storage.values.attribution }
        set { self.owned.values.attribution = newValue }
    }

    /// As `URLSessionConfiguration.requiresDNSSECValidation`; one of the two suffices.
    public var requiresDNSSECValidation: Bool {
        get { self.storage.values.restrictions.contains(.dnssec) }
        set { self.owned.values.restrictions.set(.dnssec, to: newValue) }
    }

    /// Stored without effect: addresses are kept no longer than the system's resolver does.
    public var allowsPersistentDNS: Bool {
        get { self.storage.values.allowsPersistentDNS }
        set { self.owned.values.allowsPersistentDNS = newValue }
    }

    /// Whether the request sends stored cookies, and cookies of the response are stored.
    public var httpShouldHandleCookies: Bool {
        get { self.storage.values.httpShouldHandleCookies }
        set { self.owned.values.httpShouldHandleCookies = newValue }
    }

    /// As `URLSessionConfiguration.httpShouldUsePipelining`; one of the two suffices.
    public var httpShouldUsePipelining: Bool {
        get { self.storage.values.httpShouldUsePipelining }
        set { self.owned.values.httpShouldUsePipelining = newValue }
    }

    /// `nil` if the session's timeout applies.
    package var chosenTimeout: TimeInterval? {
        get { self.storage.values.chosenTimeout }
        set { self.owned.values.chosenTimeout = newValue }
    }

    /// Idle timeout in seconds: without data in either direction for so long, the load fails with `URLError.timedOut`.
    public var timeoutInterval: TimeInterval {
        get { self.storage.values.chosenTimeout ?? Self.standardTimeout }
        set { self.owned.values.chosenTimeout = newValue }
    }

    /// GET, HEAD, POST, PUT, DELETE and CONNECT are converted to upper case; other methods are left as they are. `nil`
    /// means GET.
    public var httpMethod: String? {
        get { self.storage.values.method }
        set {
            let name = newValue ?? "GET"
            let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT"]
            self.owned.values.method = known.first { $0.matchesIgnoringCase(name) } ?? name
        }
    }

    /// The document that the request belongs to; determines which cookies are third-party.
    public var mainDocumentURL: URL? {
        get { self.storage.values.mainDocumentURL }
        set { self.owned.values.mainDocumentURL = newValue }
    }

    /// Stored without effect: the cookie storage is not partitioned.
    public var cookiePartitionIdentifier: String? {
        get { self.storage.values.cookiePartitionIdentifier }
        set { self.owned.values.cookiePartitionIdentifier = newValue }
    }

    var fields: RequestFields {
        get { self.storage.values.fields }
        set { self.owned.values.fields = newValue }
    }

    var body: RequestBody {
        get { self.storage.values.body }
        set {
            self.owned.values.body = newValue
            self.owned.values.streamOfData = nil
        }
    }

    /// Set by `URLProtocol.setProperty`; ignored by `==`.
    package var properties: [String: Any] {
        get { self.storage.values.properties }
        set { self.owned.values.properties = newValue }
    }

    /// All fields by name; `nil` if none was ever set. Fields with an invalid name or value are dropped.
    public var allHTTPHeaderFields: [String: String]? {
        get { self.fields.values }
        set { self.fields = RequestFields(newValue) }
    }

    /// The field's value. Names are case-insensitive.
    public func value(forHTTPHeaderField field: String) -> String? { self.fields.value(for: field) }

    /// Sets or removes the field. Has no effect if the name is not a token, or if the value contains NUL or a line end
    /// that is not followed by white space and so would start another field.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.changeFields { $0.set(value, for: field) }
    }

    /// Appends to the field, after a comma if it has a value.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
        self.changeFields { $0.add(value, for: field) }
    }

    /// Takes the fields out of the storage meanwhile, so that the dictionary is changed in place.
    private mutating func changeFields(_ body: (inout RequestFields) -> Void) {
        var fields = self.fields
        self.fields = RequestFields()
        body(&fields)
        self.fields = fields
    }

    /// The body as data. Setting it removes the stream.
    public var httpBody: Data? {
        get { if case .data(let data) = self.body { data } else { nil } }
        set { self.body = newValue.map(RequestBody.data) ?? .none }
    }

    /// The body as an unopened stream. Setting it removes the data.
    public var httpBodyStream: InputStream? {
        get { if case .stream(let stream) = self.body { stream } else { self.storage.values.streamOfData } }
        set { self.body = newValue.map(RequestBody.stream) ?? .none }
    }

    /// The request with a body that a `URLProtocol` reads from `httpBodyStream`, the only place where it is on Apple's
    /// platforms. Data are in `httpBody` too, where FoundationNetworking has them.
    func offeringStream(of body: TaskBody) -> URLRequest {
        var request = self
        switch body {
        case .data(let data):
            request.body = .data(data)
            request.owned.values.streamOfData = InputStream(data: data)
        case .file(let url): request.httpBodyStream = InputStream(url: url)
        case .none, .filePart, .stream, .streamRest: break
        }
        return request
    }
}

/// The properties of a request.
private struct Values {
    var url: URL?
    var cachePolicy: URLRequest.CachePolicy
    var networkServiceType = URLRequest.NetworkServiceType.default
    var restrictions = NetworkRestrictions()
    var allowsUltraConstrainedNetworkAccess = true
    var assumesHTTP3Capable = false
    var allowsPersistentDNS = false
    var attribution = URLRequest.Attribution.developer
    var httpShouldHandleCookies = true
    var httpShouldUsePipelining = false
    var chosenTimeout: TimeInterval?
    var method = "GET"
    var mainDocumentURL: URL?
    var cookiePartitionIdentifier: String?
    var fields = RequestFields()
    var body = RequestBody.none
    /// Set by `offeringStream(of:)`; ignored by `==`.
    var streamOfData: InputStream?
    var properties: [String: Any] = [:]
}

/// Restrictions on the networks that a request uses; none by default.
struct NetworkRestrictions: OptionSet {
    let rawValue: UInt8

    static let noCellular = NetworkRestrictions(rawValue: 1)
    static let noExpensive = NetworkRestrictions(rawValue: 2)
    static let noConstrained = NetworkRestrictions(rawValue: 4)
    static let dnssec = NetworkRestrictions(rawValue: 8)

    /// Classes of networks that the request does not allow.
    var forbiddenClasses: InterfaceClasses {
        var classes = InterfaceClasses()
        if self.contains(.noCellular) { classes.insert(.cellular) }
        if self.contains(.noExpensive) { classes.insert(.expensive) }
        if self.contains(.noConstrained) { classes.insert(.constrained) }
        return classes
    }

    mutating func set(_ restriction: NetworkRestrictions, to isSet: Bool) {
        if isSet { self.insert(restriction) } else { self.remove(restriction) }
    }
}

private final class Storage {
    var values: Values

    init(_ values: Values) {
        self.values = values
    }
}

extension URLRequest: Hashable {
    /// Header fields, the body's data, the time limit, the service type and pipelining make no difference, as on macOS and in
    /// FoundationNetworking: a request is still found as a key after a session has added its fields.
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.url == rhs.url && lhs.mainDocumentURL == rhs.mainDocumentURL && lhs.httpMethod == rhs.httpMethod
            && lhs.cachePolicy == rhs.cachePolicy && lhs.httpBodyStream == rhs.httpBodyStream
            && lhs.allowsCellularAccess == rhs.allowsCellularAccess
            && lhs.httpShouldHandleCookies == rhs.httpShouldHandleCookies
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.url)
        hasher.combine(self.mainDocumentURL)
        hasher.combine(self.httpMethod)
        hasher.combine(self.cachePolicy)
    }

    /// Whether all properties are equal.
    package func isSame(as other: Self) -> Bool {
        self == other && self.timeoutInterval == other.timeoutInterval
            && self.networkServiceType == other.networkServiceType && self.attribution == other.attribution
            && self.cookiePartitionIdentifier == other.cookiePartitionIdentifier && self.switches == other.switches
            && self.fields == other.fields && self.body == other.body
    }

    private var switches: [Bool] {
        [
            self.allowsCellularAccess, self.allowsExpensiveNetworkAccess, self.allowsConstrainedNetworkAccess,
            self.allowsUltraConstrainedNetworkAccess, self.assumesHTTP3Capable, self.requiresDNSSECValidation,
            self.allowsPersistentDNS, self.httpShouldHandleCookies, self.httpShouldUsePipelining,
        ]
    }
}

extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible {
    public var description: String { self.url?.description ?? "url: nil" }
    public var debugDescription: String { self.description }
}

extension URLRequest: CustomReflectable {
    public var customMirror: Mirror {
        let children: [(label: String?, value: Any)] = [
            ("url", self.url as Any), ("cachePolicy", self.cachePolicy.rawValue),
            ("timeoutInterval", self.timeoutInterval), ("mainDocumentURL", self.mainDocumentURL as Any),
            ("networkServiceType", self.networkServiceType), ("allowsCellularAccess", self.allowsCellularAccess),
            ("httpMethod", self.httpMethod as Any), ("allHTTPHeaderFields", self.allHTTPHeaderFields as Any),
            ("httpBody", self.httpBody as Any), ("httpBodyStream", self.httpBodyStream as Any),
            ("httpShouldHandleCookies", self.httpShouldHandleCookies),
            ("httpShouldUsePipelining", self.httpShouldUsePipelining),
        ]
        return Mirror(self, children: children, displayStyle: .struct)
    }
}

/// Makes `as` convert between the value and the object, as in Foundation.
extension URLRequest: _ObjectiveCBridgeable {
    public typealias ReferenceType = NSURLRequest

    public func _bridgeToObjectiveC() -> NSURLRequest { NSURLRequest(self) }

    public static func _forceBridgeFromObjectiveC(_ source: NSURLRequest, result: inout URLRequest?) {
        result = source.value
    }

    public static func _conditionallyBridgeFromObjectiveC(
        _ source: NSURLRequest, result: inout URLRequest?
    ) -> Bool {
        result = source.value
        return true
    }

    /// - Returns: for `nil`, a request without a URL.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
        if let source { return source.value }
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.url = nil
        return request
    }
}

/// The header fields of a request: one value per case-insensitive name. A name keeps the spelling it was first set
/// with.
struct RequestFields: Hashable, Sendable {
    /// `nil` until a field is set.
    private(set) var values: [String: String]?

    init() {}

    /// Of names that differ only in case, the last in alphabetical order counts. Invalid fields are dropped.
    init(_ values: [String: String]?) {
        guard let values else { return }
        self.values = [:]
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { self.set(value, for: name) }
    }

    func value(for name: String) -> String? {
        guard let values else { return nil }
        return values[name] ?? self.key(for: name).flatMap { values[$0] }
    }

    /// Has no effect if the name or the value is invalid.
    mutating func set(_ value: String?, for name: String) {
        guard let value else {
            if let key = self.key(for: name) { self.values?[key] = nil }
            return
        }
        guard name.isToken, value.isFieldValue else { return }
        let key = self.key(for: name) ?? name
        self.values = self.values ?? [:]
        self.values?[key] = value
    }

    /// Appends after a comma if there is a value (RFC 9110 §5.3).
    mutating func add(_ value: String, for name: String) {
        guard value.isFieldValue else { return }
        self.set(self.value(for: name).map { "\($0),\(value)" } ?? value, for: name)
    }

    private func key(for name: String) -> String? {
        guard let values else { return nil }
        return values[name] == nil ? values.keys.first { $0.matchesIgnoringCase(name) } : name
    }
}

extension StringProtocol {
    /// Whether this can be sent as a field value without starting another line: no NUL, and CRLF only as obsolete line
    /// folding (RFC 9112 §5.2), where white space follows.
    var isFieldValue: Bool {
        let bytes = Array(self.utf8)
        var index = 0
        while index < bytes.count {
            switch bytes[index] {
            case 0x00, 0x0A: return false
            case 0x0D:
                guard index + 2 < bytes.count, bytes[index + 1] == 0x0A,
                    bytes[index + 2] == 0x20 || bytes[index + 2] == 0x09
                else { return false }
                index += 3
            default: index += 1
            }
        }
        return true
    }
}

/// The body of a request.
enum RequestBody: Hashable {
    case none
    case data(Data)
    case stream(InputStream)

    /// Streams are compared by identity: reading one would consume it.
    static func == (lhs: Self, rhs: Self) -> Bool {
        switch (lhs, rhs) {
        case (.none, .none): true
        case (.data(let one), .data(let other)): one == other
        case (.stream(let one), .stream(let other)): one === other
        default: false
        }
    }

    func hash(into hasher: inout Hasher) {
        switch self {
        case .none: hasher.combine(0)
        case .data(let data): hasher.combine(data)
        case .stream(let stream): hasher.combine(ObjectIdentifier(stream))
        }
    }
}

/// Encodes requests for `NSCoding`. A body stream is not encoded: it cannot be read twice.
enum RequestArchive {
    /// Archived under the name of the property. An older archive lacks some; they keep their defaults.
    private static let switches: [(name: String, path: any WritableKeyPath<URLRequest, Bool> & Sendable)] = [
        ("allowsCellularAccess", \.allowsCellularAccess),
        ("allowsExpensiveNetworkAccess", \.allowsExpensiveNetworkAccess),
        ("allowsConstrainedNetworkAccess", \.allowsConstrainedNetworkAccess),
        ("allowsUltraConstrainedNetworkAccess", \.allowsUltraConstrainedNetworkAccess),
        ("assumesHTTP3Capable", \.assumesHTTP3Capable),
        ("requiresDNSSECValidation", \.requiresDNSSECValidation), ("allowsPersistentDNS", \.allowsPersistentDNS),
        ("httpShouldHandleCookies", \.httpShouldHandleCookies),
        ("httpShouldUsePipelining", \.httpShouldUsePipelining),
    ]

    static func write(_ request: URLRequest, to coder: NSCoder) {
        coder.encode(request.url.map { NSURL(string: $0.absoluteString) } ?? nil, forKey: "url")
        coder.encode(
            request.mainDocumentURL.map { NSURL(string: $0.absoluteString) } ?? nil, forKey: "mainDocumentURL")
        coder.encode(Int64(request.cachePolicy.rawValue), forKey: "cachePolicy")
        if let timeout = request.chosenTimeout { coder.encode(timeout, forKey: "timeoutInterval") }
        coder.encode(Int64(request.networkServiceType.rawValue), forKey: "networkServiceType")
        coder.encode(Int64(request.attribution.rawValue), forKey: "attribution")
        for (name, path) in self.switches { coder.encode(request[keyPath: path], forKey: name) }
        coder.encode(
            request.cookiePartitionIdentifier.map { NSString(string: $0) }, forKey: "cookiePartitionIdentifier")
        coder.encode(request.httpMethod.map { NSString(string: $0) }, forKey: "httpMethod")
        if let fields = request.allHTTPHeaderFields { ResponseArchive.write(fields, to: coder) }
        coder.encode(request.httpBody.map { NSData(data: $0) }, forKey: "httpBody")
    }

    static func read(_ coder: NSCoder) -> URLRequest? {
        guard coder.allowsKeyedCoding else { return nil }
        let url = self.url("url", in: coder)
        var request = URLRequest(url: url ?? URL(fileURLWithPath: "/"))
        request.url = url
        request.mainDocumentURL = self.url("mainDocumentURL", in: coder)
        let policy = UInt(exactly: coder.decodeInt64(forKey: "cachePolicy"))
        request.cachePolicy = policy.flatMap(URLRequest.CachePolicy.init) ?? .useProtocolCachePolicy
        if coder.containsValue(forKey: "timeoutInterval") {
            request.timeoutInterval = coder.decodeDouble(forKey: "timeoutInterval")
        }
        let service = UInt(exactly: coder.decodeInt64(forKey: "networkServiceType"))
        request.networkServiceType = service.flatMap(URLRequest.NetworkServiceType.init) ?? .default
        let attribution = UInt(exactly: coder.decodeInt64(forKey: "attribution"))
        request.attribution = attribution.flatMap(URLRequest.Attribution.init) ?? .developer
        for (name, path) in self.switches where coder.containsValue(forKey: name) {
            request[keyPath: path] = coder.decodeBool(forKey: name)
        }
        request.cookiePartitionIdentifier = ResponseArchive.text("cookiePartitionIdentifier", in: coder)
        request.httpMethod = ResponseArchive.text("httpMethod", in: coder)
        request.allHTTPHeaderFields = ResponseArchive.fields(coder)
        request.httpBody = coder.decodeObject(of: NSData.self, forKey: "httpBody").map { Data(referencing: $0) }
        return request
    }

    private static func url(_ key: String, in coder: NSCoder) -> URL? {
        coder.decodeObject(of: NSURL.self, forKey: key).flatMap(\.absoluteString).flatMap { URL(string: $0) }
    }
}

extension NSURLRequest.NetworkServiceType {
    /// The traffic class that marks packets of this kind.
    package var trafficClass: TrafficClass {
        switch self {
        case .default: .standard
        case .background: .lowPriority
        case .responsiveData: .lowLatency
        case .avStreaming: .streaming
        case .responsiveAV: .interactive
        case .video: .conferencing
        // Both names mean call signaling; the audio of calls is `voice`.
        case .voip, .callSignaling: .signaling
        case .voice: .telephony
        }
    }
}
