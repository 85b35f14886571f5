import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

/// A thread-safe store of responses to GET requests, in memory and on disk, one for each URL.
///
/// It stores and returns any response, however old; the loader decides what may be stored and whether it is fresh. Disk
/// access is synchronous.
open class URLCache: NSObject, @unchecked Sendable {  // Not final; its lock guards what changes.
    /// Where a response may be stored.
    public enum StoragePolicy: UInt, Sendable {
        case allowed = 0
        case allowedInMemoryOnly = 1
        case notAllowed = 2
    }

    private struct Stores {
        var memory: MemoryStore
        var disk: DiskStore
    }

    /// Capacities of the shared cache: 4 MiB in memory, 20 MiB on disk.
    private static let standardMemory = 4 << 20
    private static let standardDisk = 20 << 20
    private static let sharedCache = Mutex(
        URLCache(memoryCapacity: standardMemory, diskCapacity: standardDisk, directory: nil))

    private let stores: Mutex<Stores>
    private let ownQueue = DispatchQueue(label: "URLLoading.cache")

    /// With the capacities and the directory of the shared cache.
    public override convenience init() {
        self.init(memoryCapacity: Self.standardMemory, diskCapacity: Self.standardDisk, directory: nil)
    }

    /// - Parameters:
    ///   - memoryCapacity: in bytes; 0 stores nothing in memory.
    ///   - diskCapacity: in bytes; 0 stores nothing on disk.
    ///   - path: a directory used by this cache only; a relative path is below the program's cache directory. `nil`: a
    ///     directory below it.
    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        let folder = path.map { path in
            path.hasPrefix("/")
                ? URL(fileURLWithPath: path, isDirectory: true) : StorageLocation.caches.appendingPathComponent(path)
        }
        self.stores = Self.stores(memoryCapacity, diskCapacity, folder)
        super.init()
    }

    /// - Parameter directory: used by this cache only; `nil`: a directory below the program's cache directory.
    public init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
        self.stores = Self.stores(memoryCapacity, diskCapacity, directory)
        super.init()
    }

    private static func stores(_ memoryCapacity: Int, _ diskCapacity: Int, _ directory: URL?) -> Mutex<Stores> {
        let folder = directory ?? StorageLocation.caches.appendingPathComponent("responses")
        return Mutex(
            Stores(
                memory: MemoryStore(capacity: memoryCapacity),
                disk: DiskStore(folder: folder, capacity: diskCapacity)))
    }

    /// The cache of this program, with 4 MiB in memory and 20 MiB on disk unless it is replaced.
    open class var shared: URLCache {
        get { self.sharedCache.withLock { $0 } }
        set { self.sharedCache.withLock { $0 = newValue } }
    }

    /// Stores the response under the task's current request.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.storeCachedResponse(cachedResponse, for: request)
    }

    /// - Parameter completionHandler: called on a queue of the cache; gets `nil` if nothing is stored.
    open func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let request = dataTask.currentRequest
        self.queue.async { completionHandler(request.flatMap { self.cachedResponse(for: $0) }) }
    }

    /// Removes the response stored under the task's current request.
    open func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.removeCachedResponse(for: request)
    }

    /// The response stored for the request's URL; `nil` for methods other than GET.
    open func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        guard let key = Self.key(for: request) else { return nil }
        return self.stores.withLock { stores in
            if let response = stores.memory.response(for: key) { return response }
            guard let found = stores.disk.response(for: key) else { return nil }
            let exchange =
                found.response.exchange
                ?? CachedExchange(storing: found.response.response, for: request, at: found.stored)
            stores.memory.store(found.response, for: key, stored: found.stored, exchange: exchange)
            return found.response
        }
    }

    /// Adds the exchange to a response returned by `cachedResponse(for:)`. If the program made the response, the exchange
    /// describes when and for which request it was stored. The age of one that a custom cache kept itself counts from its
    /// `Date` field, and is unknown without it.
    func withExchange(_ response: CachedURLResponse, for request: URLRequest) -> CachedURLResponse {
        guard response.exchange == nil, let key = Self.key(for: request) else { return response }
        if let exchange = self.stores.withLock({ $0.memory.exchange(of: response, for: key) }) {
            return response.with(exchange)
        }
        guard self.isCustom, (response.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Date") != nil
        else { return response }
        return response.with(CachedExchange(storing: response.response, for: request, at: Date()))
    }

    /// Whether a response may be stored for the request. Neither blocks nor reads a file, so it may return `true` wrongly,
    /// as it does for a custom cache.
    func mayContain(_ request: URLRequest) -> Bool {
        guard !self.isCustom else { return true }
        guard let key = Self.key(for: request) else { return false }
        return self.stores.withLockIfAvailable { $0.memory.has(key) || $0.disk.mayContain(key) } ?? true
    }

    /// Stores the response, replacing that for the same URL, if its policy, the method and the capacities allow it. Evicts
    /// the least recently used.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        guard let key = Self.key(for: request), cachedResponse.storagePolicy != .notAllowed else { return }
        let now = Date()
        let exchange =
            cachedResponse.exchange ?? CachedExchange(storing: cachedResponse.response, for: request, at: now)
        self.stores.withLock { stores in
            stores.memory.store(cachedResponse, for: key, stored: now, exchange: exchange)
            if cachedResponse.storagePolicy == .allowed {
                stores.disk.store(cachedResponse, for: key, stored: now, exchange: exchange)
            } else {
                stores.disk.remove(key)
            }
        }
    }

    open func removeCachedResponse(for request: URLRequest) {
        guard let key = Self.key(for: request) else { return }
        self.stores.withLock { stores in
            stores.memory.remove(key)
            stores.disk.remove(key)
        }
    }

    open func removeAllCachedResponses() {
        self.stores.withLock { stores in
            stores.memory.removeAll()
            stores.disk.removeAll()
        }
    }

    /// Removes the responses stored at `date` or later.
    open func removeCachedResponses(since date: Date) {
        self.stores.withLock { stores in
            stores.memory.remove(since: date)
            stores.disk.remove(since: date)
        }
    }

    /// In bytes. Reducing it evicts immediately.
    open var memoryCapacity: Int {
        get { self.stores.withLock { $0.memory.capacity } }
        set { self.stores.withLock { $0.memory.setCapacity(newValue) } }
    }

    /// In bytes. Reducing it evicts immediately.
    open var diskCapacity: Int {
        get { self.stores.withLock { $0.disk.capacity } }
        set { self.stores.withLock { $0.disk.setCapacity(newValue) } }
    }

    /// In bytes.
    open var currentMemoryUsage: Int { self.stores.withLock { $0.memory.usage } }

    /// In bytes.
    open var currentDiskUsage: Int { self.stores.withLock { $0.disk.usage() } }

    private static func key(for request: URLRequest) -> String? {
        guard request.httpMethod == "GET", let url = request.url?.absoluteString else { return nil }
        return CacheKey.text(of: url)
    }
}

/// The cache as loads use it.
extension URLCache {
    /// Whether it may have methods of its own, which decide what it contains.
    var isCustom: Bool { type(of: self) != URLCache.self }

    /// Runs the calls of loads, in order. Methods of a custom cache may block, which must not delay the loads of others.
    var queue: DispatchQueue { self.isCustom ? self.ownQueue : DiskQueue.shared }

    /// Finds the response to a request of `task`. May read a file.
    /// - Parameters:
    ///   - request: the task's current request, or the form of it under which its response is stored.
    ///   - completion: called once, on any thread, possibly at once.
    func find(
        _ request: URLRequest, of task: URLSessionTask, _ completion: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard self.isCustom, let task = task as? URLSessionDataTask,
            task.latestRequest?.isSame(as: request) == true
        else {
            return completion(self.cachedResponse(for: request).map { self.withExchange($0, for: request) })
        }
        let handler = OneShotHandler<CachedURLResponse?> { found in
            completion(found.map { self.withExchange($0, for: request) })
        }
        self.getCachedResponse(for: task) { handler($0) }
    }

    /// Stores the response to the current request of `task`. May write a file.
    func store(_ response: CachedURLResponse, for request: URLRequest, of task: URLSessionTask) {
        guard self.isCustom, let task = task as? URLSessionDataTask,
            task.latestRequest?.isSame(as: request) == true
        else {
            return self.storeCachedResponse(response, for: request)
        }
        self.storeCachedResponse(response, for: task)
    }
}

extension URLCache {
    /// Like `getCachedResponse(for:completionHandler:)`.
    public func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await withCheckedContinuation { continuation in
            self.getCachedResponse(for: dataTask) { continuation.resume(returning: $0) }
        }
    }
}

/// A response with its content, as stored in a cache. Immutable.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {  // Not final; immutable.
    private let storedResponse: URLResponse
    private let storedData: Data
    private let storedUserInfo: [AnyHashable: Any]?
    private let storedPolicy: URLCache.StoragePolicy
    /// `nil` for a response made by the program: its age counts from when it is stored, or from its `Date` field.
    package private(set) var exchange: CachedExchange?

    open class var supportsSecureCoding: Bool { true }

    /// May be stored in memory and on disk.
    public init(response: URLResponse, data: Data) {
        self.storedResponse = response
        self.storedData = data
        self.storedUserInfo = nil
        self.storedPolicy = .allowed
        super.init()
    }

    /// - Parameter userInfo: stored on disk, and archived, only if it is a property list with string keys.
    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil, storagePolicy: URLCache.StoragePolicy
    ) {
        self.storedResponse = response
        self.storedData = data
        self.storedUserInfo = userInfo
        self.storedPolicy = storagePolicy
        super.init()
    }

    package convenience init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]?, storagePolicy: URLCache.StoragePolicy,
        exchange: CachedExchange?
    ) {
        self.init(response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy)
        self.exchange = exchange
    }

    /// Inherited by a subclass that overrides both designated initializers.
    public required convenience init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding,
            let response = coder.decodeObject(of: [URLResponse.self, HTTPURLResponse.self], forKey: "response")
                as? URLResponse,
            let data = coder.decodeObject(of: NSData.self, forKey: "data")
        else { return nil }
        let policy = UInt(exactly: coder.decodeInt64(forKey: "storagePolicy"))
        self.init(
            response: response, data: Data(referencing: data),
            userInfo: coder.decodeObject(of: NSData.self, forKey: "userInfo").flatMap {
                Self.userInfo(Data(referencing: $0))
            },
            storagePolicy: policy.flatMap(URLCache.StoragePolicy.init) ?? .notAllowed)
    }

    open func encode(with coder: NSCoder) {
        coder.encode(self.storedResponse, forKey: "response")
        coder.encode(NSData(data: self.storedData), forKey: "data")
        coder.encode(self.encodedUserInfo.map { NSData(data: $0) }, forKey: "userInfo")
        coder.encode(Int64(self.storedPolicy.rawValue), forKey: "storagePolicy")
    }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    open var response: URLResponse { self.storedResponse }
    /// With content codings decoded.
    open var data: Data { self.storedData }
    open var userInfo: [AnyHashable: Any]? { self.storedUserInfo }
    open var storagePolicy: URLCache.StoragePolicy { self.storedPolicy }

    /// Ignores `userInfo`, whose values need not be comparable.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CachedURLResponse else { return false }
        return other === self
            || other.storedResponse == self.storedResponse && other.storedData == self.storedData
                && other.storedPolicy == self.storedPolicy
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.storedResponse)
        hasher.combine(self.storedData)
        hasher.combine(self.storedPolicy)
        return hasher.finalize()
    }
}

extension CachedURLResponse {
    /// A response received over HTTP, with the metadata for the rules of caching.
    package convenience init(
        response: HTTPURLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil,
        storagePolicy: URLCache.StoragePolicy, entry: CacheEntry
    ) {
        let exchange = CachedExchange(
            requestTime: entry.requestTime.seconds, responseTime: entry.responseTime.seconds,
            selection: entry.varyKey.values)
        self.init(
            response: response, data: data, userInfo: userInfo, storagePolicy: storagePolicy, exchange: exchange)
    }

    /// A copy of a response of HTTP whose fields `change` has changed, or else the response itself.
    func withFields(_ change: (HTTPFields) -> HTTPFields) -> CachedURLResponse {
        guard let response = self.response as? HTTPURLResponse, type(of: response) == HTTPURLResponse.self,
            let url = response.url
        else { return self }
        let fields = response.httpFields
        let changed = change(fields)
        guard changed != fields else { return self }
        let copy = HTTPURLResponse(
            url: url, statusCode: response.statusCode, httpVersion: response.httpVersion ?? "HTTP/1.1",
            fields: changed, contentIsEncoded: response.expectedContentLength < 0)
        return CachedURLResponse(
            response: copy, data: self.data, userInfo: self.userInfo, storagePolicy: self.storagePolicy,
            exchange: self.exchange)
    }

    /// The response as it is used without validation: with its age (RFC 9111 §4).
    func withAge(at now: HTTPDate) -> CachedURLResponse {
        guard let entry else { return self }
        return self.withFields { fields in
            var fields = fields
            fields[.age] = "\(entry.age(at: now))"
            return fields
        }
    }

    /// `nil` if a property list cannot hold the values.
    var encodedUserInfo: Data? {
        guard let list = self.userInfo as? [String: Any],
            PropertyListSerialization.propertyList(list, isValidFor: .binary)
        else { return nil }
        return try? PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    }

    static func userInfo(_ encoded: Data) -> [String: Any]? {
        try? PropertyListSerialization.propertyList(from: encoded, format: nil) as? [String: Any]
    }

    /// A copy with `exchange`.
    func with(_ exchange: CachedExchange) -> CachedURLResponse {
        CachedURLResponse(
            response: self.response, data: self.data, userInfo: self.userInfo, storagePolicy: self.storagePolicy,
            exchange: exchange)
    }

    /// The metadata for the rules of caching; `nil` if the age is unknown or the response is not of HTTP.
    package var entry: CacheEntry? {
        guard let exchange, let response = self.response as? HTTPURLResponse else { return nil }
        return CacheEntry(
            status: response.statusCode, fields: response.httpFields,
            varyKey: VaryKey(values: exchange.selection),
            requestTime: HTTPDate(seconds: exchange.requestTime),
            responseTime: HTTPDate(seconds: exchange.responseTime))
    }
}

extension NSURLRequest.CachePolicy {
    package var meaning: HTTPSemantics.CachePolicy {
        switch self {
        case .useProtocolCachePolicy: .useProtocolCachePolicy
        case .reloadIgnoringLocalCacheData: .reloadIgnoringLocalCacheData
        case .reloadIgnoringLocalAndRemoteCacheData: .reloadIgnoringLocalAndRemoteCacheData
        case .returnCacheDataElseLoad: .returnCacheDataElseLoad
        case .returnCacheDataDontLoad: .returnCacheDataDontLoad
        case .reloadRevalidatingCacheData: .reloadRevalidatingCacheData
        }
    }
}

/// The metadata of the exchange that produced a cached response (RFC 9111 §4.1, §4.2.3).
package struct CachedExchange: Codable, Hashable, Sendable {
    /// Seconds since 1970, by the local clock.
    package var requestTime: Int64
    package var responseTime: Int64
    /// The request's values of the fields that `Vary` names; `nil` for `Vary: *`, which matches no other request.
    package var selection: [String: String?]?

    package init(requestTime: Int64, responseTime: Int64, selection: [String: String?]?) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.selection = selection
    }

    /// For a response stored by the program, as if received at `time`. Only `Vary` fields that are set in `request` are
    /// compared: fields added by a session are unknown here.
    init(storing response: URLResponse, for request: URLRequest, at time: Date) {
        let seconds = HTTPDate(time).seconds
        let fields = (response as? HTTPURLResponse)?.httpFields ?? [:]
        let selection = VaryKey(response: fields, request: HTTPFields(request.allHTTPHeaderFields)).values ?? [:]
        self.init(
            requestTime: seconds, responseTime: seconds, selection: selection.filter { $0.value != nil })
    }
}
