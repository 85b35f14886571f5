import Foundation
import StreamTransport

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

extension URLRequest {
    /// All fields by name; `nil` while none was ever set. Names or values that would break the header are left out.
    public var allHTTPHeaderFields: [String: String]? {
        get { self.fields.values }
        set { self.fields = RequestFields(newValue) }
    }

    /// The field's value; names are told apart without regard to case.
    public func value(forHTTPHeaderField field: String) -> String? { self.fields.value(for: field) }

    /// Sets the field, or takes it away. Nothing changes where the name is no token, or where the value holds a NUL or
    /// a line end that no blank follows: such a value would begin another field.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) {
        self.fields.set(value, for: field)
    }

    /// Adds to the field, behind a comma if it has a value already.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) {
        self.fields.add(value, for: field)
    }

    /// The body as bytes. Setting it takes the stream away.
    public var httpBody: Data? {
        get { if case .data(let data) = self.body { data } else { nil } }
        set { self.body = newValue.map(RequestBody.data) ?? .none }
    }

    /// The body as a stream that is not open yet. Setting it takes the bytes away.
    public var httpBodyStream: InputStream? {
        get { if case .stream(let stream) = self.body { stream } else { nil } }
        set { self.body = newValue.map(RequestBody.stream) ?? .none }
    }
}

extension URLRequest: Hashable {
    public static func == (lhs: Self, rhs: Self) -> Bool {
        lhs.url == rhs.url && lhs.mainDocumentURL == rhs.mainDocumentURL && lhs.httpMethod == rhs.httpMethod
            && lhs.cachePolicy == rhs.cachePolicy && lhs.timeoutInterval == rhs.timeoutInterval
            && lhs.networkServiceType == rhs.networkServiceType && lhs.attribution == rhs.attribution
            && lhs.cookiePartitionIdentifier == rhs.cookiePartitionIdentifier && lhs.switches == rhs.switches
            && lhs.fields == rhs.fields && lhs.body == rhs.body
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(self.url)
        hasher.combine(self.mainDocumentURL)
        hasher.combine(self.httpMethod)
        hasher.combine(self.cachePolicy)
        hasher.combine(self.timeoutInterval)
        hasher.combine(self.fields)
        hasher.combine(self.body)
    }

    private var switches: [Bool] {
        [
            self.allowsCellularAccess, self.allowsExpensiveNetworkAccess, self.allowsConstrainedNetworkAccess,
            self.allowsUltraConstrainedNetworkAccess, self.assumesHTTP3Capable, self.requiresDNSSECValidation,
            self.httpShouldHandleCookies, self.httpShouldUsePipelining,
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

/// Lets `as` turn the value into the object and back, as code for Foundation writes it.
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

    /// - Returns: for `nil`, a request that cannot be loaded.
    public static func _unconditionallyBridgeFromObjectiveC(_ source: NSURLRequest?) -> URLRequest {
        if let source { return source.value }
        var request = URLRequest(url: URL(fileURLWithPath: "/"))
        request.url = nil
        return request
    }
}

/// The header fields of a request: one value a name, names told apart without regard to the case of ASCII letters.
/// A name is kept as it was first given.
struct RequestFields: Hashable, Sendable {
    /// `nil` until something is set.
    private(set) var values: [String: String]?

    init() {}

    /// Where two names differ in case alone, the later in alphabetical order counts. What cannot be sent is left out.
    init(_ values: [String: String]?) {
        guard let values else { return }
        self.values = [:]
        for (name, value) in values.sorted(by: { $0.key < $1.key }) { self.set(value, for: name) }
    }

    func value(for name: String) -> String? {
        guard let values else { return nil }
        return values[name] ?? self.key(for: name).flatMap { values[$0] }
    }

    /// Nothing changes when the name or the value cannot be sent.
    mutating func set(_ value: String?, for name: String) {
        guard let value else {
            if let key = self.key(for: name) { self.values?[key] = nil }
            return
        }
        guard name.isFieldName, value.isFieldValue else { return }
        let key = self.key(for: name) ?? name
        self.values = self.values ?? [:]
        self.values?[key] = value
    }

    /// Behind a comma, where there is a value already (RFC 9110 §5.3).
    mutating func add(_ value: String, for name: String) {
        guard value.isFieldValue else { return }
        self.set(self.value(for: name).map { "\($0),\(value)" } ?? value, for: name)
    }

    private func key(for name: String) -> String? {
        guard let values else { return nil }
        return values[name] == nil ? values.keys.first { $0.isSameFieldName(as: name) } : name
    }
}

extension StringProtocol {
    /// Compares as names of fields compare: letters of ASCII in either case are the same, nothing else is.
    func isSameFieldName(as other: some StringProtocol) -> Bool {
        self.utf8.count == other.utf8.count
            && self.utf8.elementsEqual(other.utf8) { $0.loweredLetter == $1.loweredLetter }
    }

    var withLoweredLetters: String {
        guard self.utf8.contains(where: { $0 != $0.loweredLetter }) else { return String(self) }
        return String(decoding: self.utf8.map(\.loweredLetter), as: UTF8.self)
    }

    /// Whether this is a token, which is what names of fields are (RFC 9110 §5.1).
    var isFieldName: Bool {
        let marks = "!#$%&'*+-.^_`|~".utf8
        return !self.isEmpty
            && self.utf8.allSatisfy { byte in
                switch byte | 0x20 {
                case UInt8(ascii: "a")...UInt8(ascii: "z") where byte >= 0x40: true
                default: (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || marks.contains(byte)
                }
            }
    }

    /// Whether this can be sent as a value without beginning another line: no NUL, and line ends only where the next
    /// line goes on with a blank, as RFC 9112 §5.2 describes the old folding.
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

extension UInt8 {
    fileprivate var loweredLetter: UInt8 {
        UInt8(ascii: "A") <= self && self <= UInt8(ascii: "Z") ? self | 0x20 : self
    }
}

/// What a request sends: one kind of body excludes the other.
enum RequestBody {
    case none
    case data(Data)
    case stream(InputStream)
}

extension RequestBody: Hashable {
    /// Streams are equal when they are one and the same: reading them to compare would use them up.
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

/// A request in an archive. A body that is a stream is left out: it cannot be read twice.
enum RequestArchive {
    static func write(_ request: URLRequest, to coder: NSCoder) {
        coder.encode(request.url.map { NSURL(string: $0.absoluteString) } ?? nil, forKey: "url")
        coder.encode(
            request.mainDocumentURL.map { NSURL(string: $0.absoluteString) } ?? nil, forKey: "mainDocumentURL")
        coder.encode(Int64(request.cachePolicy.rawValue), forKey: "cachePolicy")
        if let timeout = request.chosenTimeout { coder.encode(timeout, forKey: "timeoutInterval") }
        coder.encode(Int64(request.networkServiceType.rawValue), forKey: "networkServiceType")
        coder.encode(request.allowsCellularAccess, forKey: "allowsCellularAccess")
        coder.encode(request.httpShouldHandleCookies, forKey: "httpShouldHandleCookies")
        coder.encode(request.httpMethod.map { NSString(string: $0) }, forKey: "httpMethod")
        if let fields = request.allHTTPHeaderFields {
            let pairs = fields.sorted { $0.key < $1.key }.flatMap {
                [NSString(string: $0.key), NSString(string: $0.value)]
            }
            coder.encode(NSArray(array: pairs), forKey: "fields")
        }
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
        request.allowsCellularAccess = coder.decodeBool(forKey: "allowsCellularAccess")
        request.httpShouldHandleCookies = coder.decodeBool(forKey: "httpShouldHandleCookies")
        request.httpMethod = coder.decodeObject(of: NSString.self, forKey: "httpMethod").map { "\($0)" }
        request.allHTTPHeaderFields = self.fields(in: coder)
        request.httpBody = coder.decodeObject(of: NSData.self, forKey: "httpBody").map { Data(referencing: $0) }
        return request
    }

    private static func url(_ key: String, in coder: NSCoder) -> URL? {
        coder.decodeObject(of: NSURL.self, forKey: key).flatMap(\.absoluteString).flatMap { URL(string: $0) }
    }

    private static func fields(in coder: NSCoder) -> [String: String]? {
        guard coder.containsValue(forKey: "fields") else { return nil }
        let list = coder.decodeObject(of: [NSArray.self, NSString.self], forKey: "fields") as? [String]
        guard let list else { return nil }
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: list.count - 1, by: 2) { fields[list[index]] = list[index + 1] }
        return fields
    }
}

extension NSURLRequest.NetworkServiceType {
    /// The mark for traffic of this kind.
    package var trafficClass: TrafficClass {
        switch self {
        case .default: .standard
        case .background: .lowPriority
        case .responsiveData: .lowLatency
        case .avStreaming: .streaming
        case .responsiveAV: .interactive
        case .video: .conferencing
        // Calls are made and ended by the one, in older and in newer words; their sound is `voice`.
        case .voip, .callSignaling: .signaling
        case .voice: .telephony
        }
    }
}

extension URLSessionConfiguration {
    /// The request's own, or the session's.
    func trafficClass(for request: URLRequest) -> TrafficClass {
        let own = request.networkServiceType
        return (own == .default ? self.networkServiceType : own).trafficClass
    }
}
