import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

/// A store of responses to GET, in memory and on disk, for any number of threads: one for each URL.
///
/// It keeps what it is given and gives what it keeps, however old: whether a response may be stored, and whether it
/// still holds, is for the loader to say. Disk is read and written by the calling thread.
open class URLCache: NSObject, @unchecked Sendable {
    private struct Stores {
        var memory: MemoryStore
        var disk: DiskStore
    }

    /// Bytes of the shared cache: 4 MiB in memory, 20 MiB on disk.
    private static let standardMemory = 4 << 20
    private static let standardDisk = 20 << 20
    private static let sharedCache = Mutex(
        URLCache(memoryCapacity: standardMemory, diskCapacity: standardDisk, directory: nil))

    private let stores: Mutex<Stores>

    /// As large as the shared cache, and in the same folder.
    public override convenience init() {
        self.init(memoryCapacity: Self.standardMemory, diskCapacity: Self.standardDisk, directory: nil)
    }

    /// - Parameters:
    ///   - memoryCapacity: in bytes; 0 keeps nothing in memory.
    ///   - diskCapacity: in bytes; 0 keeps nothing on disk.
    ///   - path: a folder for this cache alone; one that is not absolute is below the program's folder for caches, which
    ///     is also what `nil` gives.
    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        let folder = path.map { path in
            path.hasPrefix("/")
                ? URL(fileURLWithPath: path, isDirectory: true) : StorageLocation.caches.appendingPathComponent(path)
        }
        self.stores = Self.stores(memoryCapacity, diskCapacity, folder)
        super.init()
    }

    /// - Parameter directory: a folder for this cache alone; `nil` for one below the program's folder for caches.
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

    /// The cache of this program, 4 MiB in memory and 20 MiB on disk until another takes its place.
    open class var shared: URLCache {
        get { self.sharedCache.withLock { $0 } }
        set { self.sharedCache.withLock { $0 = newValue } }
    }

    /// Keeps the response under the task's current request.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.storeCachedResponse(cachedResponse, for: request)
    }

    /// - Parameter completionHandler: on a queue of the cache's; gets `nil` where nothing is kept.
    open func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        let request = dataTask.currentRequest
        DiskQueue.shared.async { completionHandler(request.flatMap { self.cachedResponse(for: $0) }) }
    }

    /// Forgets what is kept under the task's current request.
    open func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        self.removeCachedResponse(for: request)
    }

    /// The response that is kept for the request's URL; `nil` for any other method than GET.
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

    /// `response`, which `cachedResponse(for:)` gave, with what is known of the exchange that brought it: of one that the
    /// program made, when and for which request it was stored.
    func completed(_ response: CachedURLResponse, for request: URLRequest) -> CachedURLResponse {
        guard response.exchange == nil, let key = Self.key(for: request),
            let exchange = self.stores.withLock({ $0.memory.exchange(of: response, for: key) })
        else { return response }
        return response.with(exchange)
    }

    /// Whether something may be kept for the request; tells without waiting for others and without reading a file.
    func mayHave(_ request: URLRequest) -> Bool {
        guard let key = Self.key(for: request) else { return false }
        return self.stores.withLockIfAvailable { $0.memory.has(key) || $0.disk.mayHave(key) } ?? true
    }

    /// Keeps the response in place of the one for the same URL, as far as its policy, the method and the capacities
    /// let it. What has not been used for longest makes room.
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

    /// Takes out what was stored at `date` or later.
    open func removeCachedResponses(since date: Date) {
        self.stores.withLock { stores in
            stores.memory.remove(since: date)
            stores.disk.remove(since: date)
        }
    }

    /// In bytes. What is too much for a smaller one goes at once.
    open var memoryCapacity: Int {
        get { self.stores.withLock { $0.memory.capacity } }
        set { self.stores.withLock { $0.memory.setCapacity(newValue) } }
    }

    /// In bytes. What is too much for a smaller one goes at once.
    open var diskCapacity: Int {
        get { self.stores.withLock { $0.disk.capacity } }
        set { self.stores.withLock { $0.disk.setCapacity(newValue) } }
    }

    /// In bytes.
    open var currentMemoryUsage: Int { self.stores.withLock { $0.memory.usage } }

    /// In bytes.
    open var currentDiskUsage: Int { self.stores.withLock { $0.disk.usage() } }

    /// The URL without its fragment, which servers never see.
    private static func key(for request: URLRequest) -> String? {
        guard request.httpMethod == "GET", let url = request.url?.absoluteString else { return nil }
        return String(url.prefix { $0 != "#" })
    }
}

extension URLCache {
    /// Where a response may be kept.
    public enum StoragePolicy: UInt, Sendable {
        case allowed = 0
        case allowedInMemoryOnly = 1
        case notAllowed = 2
    }
}

extension URLCache {
    /// As `getCachedResponse(for:completionHandler:)`.
    public func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await withCheckedContinuation { continuation in
            self.getCachedResponse(for: dataTask) { continuation.resume(returning: $0) }
        }
    }
}

/// A response with its content, as a cache keeps it. It does not change once made.
open class CachedURLResponse: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
    private let answer: URLResponse
    private let content: Data
    private let notes: [AnyHashable: Any]?
    private let policy: URLCache.StoragePolicy
    /// `nil` for a response that the program made: its age counts from when it is stored, or from its own `Date`.
    package private(set) var exchange: CachedExchange?

    open class var supportsSecureCoding: Bool { true }

    /// May be kept in memory and on disk.
    public init(response: URLResponse, data: Data) {
        self.answer = response
        self.content = data
        self.notes = nil
        self.policy = .allowed
        super.init()
    }

    /// - Parameter userInfo: goes to disk where it consists of what property lists hold, under keys that are texts.
    public init(
        response: URLResponse, data: Data, userInfo: [AnyHashable: Any]? = nil, storagePolicy: URLCache.StoragePolicy
    ) {
        self.answer = response
        self.content = data
        self.notes = userInfo
        self.policy = storagePolicy
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
            response: response, data: Data(referencing: data), userInfo: nil,
            storagePolicy: policy.flatMap(URLCache.StoragePolicy.init) ?? .notAllowed)
    }

    open func encode(with coder: NSCoder) {
        coder.encode(self.answer, forKey: "response")
        coder.encode(NSData(data: self.content), forKey: "data")
        coder.encode(Int64(self.policy.rawValue), forKey: "storagePolicy")
    }

    open override func copy() -> Any { self.copy(with: nil) }
    open func copy(with zone: NSZone?) -> Any { self }

    open var response: URLResponse { self.answer }
    /// Decoded of its content codings.
    open var data: Data { self.content }
    open var userInfo: [AnyHashable: Any]? { self.notes }
    open var storagePolicy: URLCache.StoragePolicy { self.policy }

    /// `userInfo` does not count: what is in it need not be comparable.
    open override func isEqual(_ object: Any?) -> Bool {
        guard let other = object as? CachedURLResponse else { return false }
        return other === self
            || other.answer == self.answer && other.content == self.content && other.policy == self.policy
    }

    open override var hash: Int {
        var hasher = Hasher()
        hasher.combine(self.answer)
        hasher.combine(self.content)
        hasher.combine(self.policy)
        return hasher.finalize()
    }
}

extension CachedURLResponse {
    /// A response that came over HTTP, with what the rules of caches ask about it.
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

    /// The same response, as one that came by `exchange`.
    func with(_ exchange: CachedExchange) -> CachedURLResponse {
        CachedURLResponse(
            response: self.response, data: self.data, userInfo: self.userInfo, storagePolicy: self.storagePolicy,
            exchange: exchange)
    }

    /// What the rules of caches ask about the response; `nil` where nothing is known of its age, or where it did not
    /// come over HTTP.
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
    /// The policy by its meaning.
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

/// What a cache must know of the exchange that brought a response, beyond the response itself (RFC 9111 §4.1, §4.2.3).
package struct CachedExchange: Codable, Hashable, Sendable {
    /// Seconds since 1970, by the clock of this machine.
    package var requestTime: Int64
    package var responseTime: Int64
    /// What the request said in the fields that `Vary` names; `nil` for a response that is an answer to no other request.
    package var selection: [String: String?]?

    package init(requestTime: Int64, responseTime: Int64, selection: [String: String?]?) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.selection = selection
    }
}

extension CachedExchange {
    /// Of a response that the program stores itself: as if it came at that time. Of the fields that it varies by only
    /// those count that `request` itself says: what a session adds is not known here, and the program means it for the URL.
    init(storing response: URLResponse, for request: URLRequest, at time: Date) {
        let seconds = HTTPDate(time).seconds
        let fields = (response as? HTTPURLResponse)?.httpFields ?? [:]
        let selection = VaryKey(response: fields, request: HTTPFields(request.allHTTPHeaderFields)).values ?? [:]
        self.init(
            requestTime: seconds, responseTime: seconds, selection: selection.filter { $0.value != nil })
    }
}
