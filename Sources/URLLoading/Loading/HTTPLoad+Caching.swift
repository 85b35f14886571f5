import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import StreamTransport
import WireText

extension HTTPLoad {
    private var cachePolicy: NSURLRequest.CachePolicy {
        self.request.cachePolicy == .useProtocolCachePolicy
            ? self.core.requestSettings.cachePolicy : self.request.cachePolicy
    }

    var method: HTTPRequest.Method {
        HTTPRequest.Method(self.request.httpMethod ?? "GET") ?? .get
    }

    /// Uses a cached response or sends the request. The disk is read off the loop.
    func consultCache() {
        let policy = self.cachePolicy.meaning
        guard let cache = self.core.requestSettings.cache, self.method == .get || self.method == .head,
            policy != .reloadIgnoringLocalCacheData, policy != .reloadIgnoringLocalAndRemoteCacheData
        else { return self.proceed(with: nil) }
        let key = self.request.asGET
        if !cache.mayContain(key) { return self.proceed(with: nil) }
        // A custom cache is asked for the task's current request.
        if cache.isCustom { self.publishRequest() }
        let found = self.awaiting { (load: HTTPLoad, found: CachedURLResponse?) in load.proceed(with: found) }
        let task = self.loader.task
        cache.queue.async { cache.find(key, of: task, found) }
    }

    private func proceed(with stored: CachedURLResponse?) {
        let policy = self.cachePolicy.meaning
        if let stored, stored.entry == nil {
            // Its age is unknown: it did not come over HTTP, or it comes from a custom cache.
            if policy == .returnCacheDataElseLoad || policy == .returnCacheDataDontLoad { return self.deliver(stored) }
        }
        let decision = CacheDecision.decide(
            policy, method: self.method, fields: self.fields(toMatch: stored), entry: stored?.entry,
            now: HTTPDate(Date()))
        switch decision {
        case .useStored:
            guard let stored else { return self.send() }
            self.deliver(stored.withAge(at: HTTPDate(Date())))
        case .validate(let fields):
            self.stored = stored
            self.conditions = fields
            self.send()
        case .load(let fields):
            self.conditions = fields
            self.send()
        case .unavailable:
            self.fail(.resourceUnavailable, "The cache policy allows cached responses only, and there is none.")
        }
    }

    /// The fields of the request: to match a stored response, as they would be sent, as far as they are known.
    private func fields(toMatch stored: CachedURLResponse?) -> HTTPFields {
        guard stored != nil else { return HTTPFields(self.request.allHTTPHeaderFields) }
        return HTTPFields(self.requestBuilder.fields(of: self.request, defaults: self.core.defaultFields))
    }

    private func deliver(_ stored: CachedURLResponse) {
        let now = ContinuousInstant.now
        let response = self.request.url.map { stored.response.at($0) } ?? stored.response
        self.loader.recordTransaction(
            TransactionRecord(
                request: self.request, response: response,
                source: .cache(LocalTimings(fetchStart: now, responseStart: now, responseEnd: now)),
                decodedBytes: Int64(stored.data.count)))
        self.loader.deliver(response, self.method == .head ? Data() : stored.data)
    }

    /// Handles a 304 response: delivers the stored response with its updated fields.
    /// - Returns: `false` if no stored response was being validated.
    func useStored(updatedBy fields: HTTPFields) -> Bool {
        guard let stored = self.stored, let entry = stored.entry, let cache = self.core.requestSettings.cache,
            let response = stored.response as? HTTPURLResponse, let url = response.url,
            let attempt = self.attempt, let startedAt = attempt.startedAt
        else { return false }
        let sentFields = HTTPFields(attempt.head.fields.all)
        let fresh = entry.freshened(
            by: fields, requestFields: sentFields, requestTime: HTTPDate(startedAt), responseTime: HTTPDate(Date()))
        self.abandonAttempt()
        self.stored = nil
        guard let fresh else {
            // The 304 is about another representation (RFC 9111 §4.3.4).
            self.conditions = [:]
            self.send()
            return true
        }
        let renewed = CachedURLResponse(
            response: HTTPURLResponse(
                url: url, statusCode: response.statusCode, httpVersion: response.httpVersion ?? "HTTP/1.1",
                fields: fresh.fields, contentIsEncoded: response.expectedContentLength < 0),
            data: stored.data, userInfo: stored.userInfo, storagePolicy: stored.storagePolicy, entry: fresh)
        let (request, task) = (self.request.asGET, self.loader.task)
        // The 304 may forbid it.
        let storability = Storability.evaluate(
            method: .get, requestFields: sentFields, status: fresh.status, fields: fresh.fields)
        cache.queue.async {
            if storability == .refused(.noStore) || storability == .refused(.varies) {
                return cache.removeCachedResponse(for: request)
            }
            cache.store(renewed, for: request, of: task)
        }
        self.deliver(renewed)
        return true
    }

    /// Invalidates what the response makes stale, and prepares to cache it.
    func startCaching(_ response: HTTPURLResponse) {
        self.cacheWriter = nil
        guard let cache = self.core.requestSettings.cache, let attempt = self.attempt,
            let startedAt = attempt.startedAt
        else { return }
        self.invalidateCache(response, cache)
        if self.method == .head { self.compareWithStored(response, HTTPFields(attempt.head.fields.all), cache) }
        guard self.loader.isCacheable else { return }
        let sentFields = HTTPFields(attempt.head.fields.all)
        self.cacheWriter = CacheWriter(
            response, to: self.request, sentFields: sentFields, requestTime: startedAt, cache: cache)
        let isReplaced = CacheInvalidation.replacesStored(
            method: self.method, requestFields: sentFields, status: response.statusCode)
        guard self.cacheWriter == nil, isReplaced, !cache.isCustom, cache.mayContain(self.request.asGET) else { return }
        let key = self.request.asGET
        cache.queue.async { cache.removeCachedResponse(for: key) }
    }

    /// Removes the stored response to a GET that a response to a HEAD contradicts.
    private func compareWithStored(_ response: HTTPURLResponse, _ sentFields: HTTPFields, _ cache: URLCache) {
        let key = self.request.asGET
        guard response.statusCode == 200, !cache.isCustom, cache.mayContain(key) else { return }
        let fields = response.httpFields
        cache.queue.async {
            guard let entry = cache.cachedResponse(for: key)?.entry,
                CacheInvalidation.isOutdated(entry, byHead: fields, requestFields: sentFields)
            else { return }
            cache.removeCachedResponse(for: key)
        }
    }

    func invalidateCache(_ response: HTTPURLResponse, _ cache: URLCache) {
        // The response may be that of an upload which was continued elsewhere.
        let creation = self.upload?.creation
        let method = creation.map { HTTPRequest.Method($0.httpMethod ?? "") ?? .put } ?? self.method
        guard CacheInvalidation.invalidatesTarget(method: method, status: response.statusCode),
            let url = creation?.url ?? self.request.url, let origin = HTTPSemantics.Origin(url)
        else { return }
        let references = CacheInvalidation.invalidatedReferences(
            method: method, status: response.statusCode, fields: response.httpFields)
        let targets = references.compactMap { URL(string: $0, relativeTo: url)?.absoluteURL }
            .filter { HTTPSemantics.Origin($0) == origin }
        cache.queue.async {
            for target in [url] + targets { cache.removeCachedResponse(for: URLRequest(url: target)) }
        }
    }

    /// Stores the complete response in the cache if the delegate allows it.
    func storeInCache(then: @escaping @Sendable () -> Void) {
        guard let writer = self.cacheWriter, let proposal = writer.proposal else { return then() }
        self.cacheWriter = nil
        self.loader.askToCache(
            proposal,
            self.awaiting { load, chosen in
                // Stored before the task completes, so that the next load finds it.
                guard let chosen, chosen.storagePolicy != .notAllowed else { return then() }
                let (response, task) = (writer.completed(chosen), load.loader.task)
                writer.cache.queue.async {
                    writer.cache.store(response, for: writer.request, of: task)
                    self.core.executor.execute(then)
                }
            })
    }
}

extension URLResponse {
    /// The stored response with the fragment of `url`, which is no part of the cache key.
    fileprivate func at(_ url: URL) -> URLResponse {
        guard let own = self.url, own != url, type(of: self) == HTTPURLResponse.self,
            let http = self as? HTTPURLResponse, own.bytesBeforeFragment.elementsEqual(url.bytesBeforeFragment)
        else { return self }
        var metadata = self.metadata
        metadata.url = url
        return HTTPURLResponse(
            metadata, statusCode: http.statusCode, httpVersion: http.httpVersion, fields: http.fields)
    }
}

extension URL {
    fileprivate var bytesBeforeFragment: Substring.UTF8View {
        self.absoluteString.utf8.prefix { $0 != UInt8(ascii: "#") }
    }
}

extension URLRequest {
    /// The cache key.
    fileprivate var asGET: URLRequest {
        var request = self
        request.httpMethod = "GET"
        return request
    }
}

/// Collects the content of a response for the cache, up to a limit.
struct CacheWriter {
    let cache: URLCache
    let request: URLRequest
    private let response: HTTPURLResponse
    private let entry: CacheEntry
    /// Fields of the request as they were sent.
    private let sentFields: HTTPFields
    private let limit: Int
    private var content: Data? = Data()

    /// - Returns: `nil` if RFC 9111 forbids storing the response, if its status is not 200 to 299 (as on other
    ///   platforms), or if it is larger than a twentieth of the cache.
    init?(
        _ response: HTTPURLResponse, to request: URLRequest, sentFields: HTTPFields, requestTime: Date, cache: URLCache
    ) {
        let fields = response.httpFields
        guard (200...299).contains(response.statusCode),
            let method = HTTPRequest.Method(request.httpMethod ?? "GET"),
            Storability.evaluate(
                method: method, requestFields: sentFields, status: response.statusCode, fields: fields) == .storable
        else { return nil }
        self.limit = max(cache.memoryCapacity, cache.diskCapacity) / 20
        guard self.limit > 0, response.expectedContentLength <= Int64(self.limit) else { return nil }
        self.cache = cache
        self.request = request
        self.response = response
        self.sentFields = sentFields
        self.entry = CacheEntry(
            status: response.statusCode, fields: fields, requestFields: sentFields, requestTime: HTTPDate(requestTime),
            responseTime: HTTPDate(Date()))
    }

    mutating func append(_ data: Data) {
        guard let count = self.content?.count, count + data.count <= self.limit else {
            self.content = nil
            return
        }
        self.content?.append(data)
    }

    /// The response to cache; `nil` if it became too large.
    var proposal: CachedURLResponse? {
        self.content.map {
            CachedURLResponse(response: self.response, data: $0, storagePolicy: .allowed, entry: self.entry)
        }
    }

    /// The response that the delegate chose, with times and selection fields and without the fields of the connection, if
    /// it is not a custom subclass.
    func completed(_ chosen: CachedURLResponse) -> CachedURLResponse {
        guard type(of: chosen) == CachedURLResponse.self else { return chosen }
        let stored = chosen.withFields(HopByHop.removed(from:))
        guard stored.exchange == nil else { return stored }
        let fields = (stored.response as? HTTPURLResponse)?.httpFields ?? [:]
        return stored.with(
            CachedExchange(
                requestTime: self.entry.requestTime.seconds, responseTime: self.entry.responseTime.seconds,
                selection: VaryKey(response: fields, request: self.sentFields).values))
    }
}
