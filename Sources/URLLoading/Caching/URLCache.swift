import Foundation
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
                ? URL(fileURLWithPath: path, isDirectory: true) : StoragePlace.caches.appendingPathComponent(path)
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
        let folder = directory ?? StoragePlace.caches.appendingPathComponent("responses")
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
