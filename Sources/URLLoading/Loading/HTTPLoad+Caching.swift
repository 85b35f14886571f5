import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes

extension HTTPLoad {
    private var cachePolicy: NSURLRequest.CachePolicy {
        self.request.cachePolicy == .useProtocolCachePolicy
            ? self.core.configuration.requestCachePolicy : self.request.cachePolicy
    }

    private var method: HTTPRequest.Method {
        HTTPRequest.Method(self.request.httpMethod ?? "GET") ?? .get
    }

    /// Looks whether the answer is there already; disk is read off the loop.
    func consultCache() {
        let policy = self.cachePolicy.meaning
        guard let cache = self.core.configuration.urlCache, self.method == .get || self.method == .head,
            policy != .reloadIgnoringLocalCacheData, policy != .reloadIgnoringLocalAndRemoteCacheData
        else { return self.proceed(with: nil) }
        let key = self.request.asGET
        if !cache.mayHave(key) { return self.proceed(with: nil) }
        let found = self.awaiting { (load: HTTPLoad, found: CachedURLResponse?) in load.proceed(with: found) }
        DiskQueue.shared.async { found(cache.cachedResponse(for: key).map { cache.completed($0, for: key) }) }
    }

    private func proceed(with stored: CachedURLResponse?) {
        let policy = self.cachePolicy.meaning
        if let stored, stored.entry == nil {
            // It did not come over HTTP, or from a cache of the program's own: nothing is known of its age.
            if policy == .returnCacheDataElseLoad || policy == .returnCacheDataDontLoad { return self.deliver(stored) }
        }
        let decision = CacheDecision.decide(
            policy, method: self.method, fields: self.fields(toMatch: stored), entry: stored?.entry,
            now: HTTPDate(Date()))
        switch decision {
        case .useStored:
            guard let stored else { return self.send() }
            self.deliver(stored)
        case .validate(let fields):
            self.stored = stored
            self.conditions = fields
            self.send()
        case .load(let fields):
            self.conditions = fields
            self.send()
        case .unavailable: self.fail(.resourceUnavailable, "The response was to come from the cache, and is not there.")
        }
    }

    /// The fields of the request: where there is something to match them with, as they would be sent, as far as that is
    /// known before.
    private func fields(toMatch stored: CachedURLResponse?) -> HTTPFields {
        guard stored != nil else { return HTTPFields(self.request.allHTTPHeaderFields) }
        let lines = self.requestBuilder.fields(of: self.request, plain: self.core.defaultFields.value)
        return HTTPFields(lines: lines.lazy.map { (name: $0.name, value: $0.value) })
    }

    private func deliver(_ stored: CachedURLResponse) {
        let now = ContinuousClock.now
        self.loader.recordTransaction(
            TransactionRecord(
                request: self.request, response: stored.response,
                source: .cache(LocalTimings(fetchStart: now, responseStart: now, responseEnd: now)),
                decodedBytes: Int64(stored.data.count)))
        self.loader.deliver(stored.response, self.method == .head ? Data() : stored.data)
    }

    /// The server says that what is kept still holds.
    /// - Returns: whether that was asked.
    func useStored(updatedBy fields: HTTPFields, _ attempt: HTTPAttempt) -> Bool {
        guard let stored = self.stored, let entry = stored.entry, let cache = self.core.configuration.urlCache,
            let response = stored.response as? HTTPURLResponse, let url = response.url,
            let startedAt = attempt.startedAt
        else { return false }
        let fresh = entry.freshened(
            by: fields, requestTime: HTTPDate(startedAt), responseTime: HTTPDate(Date()))
        self.abandonAttempt()
        self.stored = nil
        guard let fresh else {
            // About another response than ours: what is kept is of no use.
            self.conditions = [:]
            self.send()
            return true
        }
        let renewed = CachedURLResponse(
            response: HTTPURLResponse(
                url: url, statusCode: response.statusCode, httpVersion: response.httpVersion ?? "HTTP/1.1",
                fields: fresh.fields, contentIsEncoded: response.expectedContentLength < 0),
            data: stored.data, userInfo: stored.userInfo, storagePolicy: stored.storagePolicy, entry: fresh)
        let request = self.request
        DiskQueue.shared.async { cache.storeCachedResponse(renewed, for: request) }
        self.deliver(renewed)
        return true
    }

    /// Sees what a response means for the cache before its content comes.
    func startCaching(_ response: HTTPURLResponse) {
        self.cacheWriter = nil
        guard let cache = self.core.configuration.urlCache, let attempt = self.attempt,
            let startedAt = attempt.startedAt
        else { return }
        self.invalidateCache(response, cache)
        guard self.loader.isCacheable else { return }
        let sent = HTTPFields(lines: attempt.head.fields.lazy.map { (name: $0.name, value: $0.value) })
        self.cacheWriter = CacheWriter(
            response, to: self.request, sent: sent, requestTime: startedAt, cache: cache)
    }

    private func invalidateCache(_ response: HTTPURLResponse, _ cache: URLCache) {
        guard CacheInvalidation.invalidatesTarget(method: self.method, status: response.statusCode),
            let url = self.request.url, let origin = HTTPSemantics.Origin(url)
        else { return }
        let references = CacheInvalidation.invalidatedReferences(
            method: self.method, status: response.statusCode, fields: response.httpFields)
        let targets = references.compactMap { URL(string: $0, relativeTo: url)?.absoluteURL }
            .filter { HTTPSemantics.Origin($0) == origin }
        DiskQueue.shared.async {
            for target in [url] + targets { cache.removeCachedResponse(for: URLRequest(url: target)) }
        }
    }

    /// Puts a whole response into the cache, if nobody objects; then goes on.
    func storeInCache(then: @escaping @Sendable () -> Void) {
        guard let keeping = self.cacheWriter, let proposal = keeping.proposal else { return then() }
        self.cacheWriter = nil
        self.loader.askToCache(
            proposal,
            self.awaiting { _, chosen in
                // Before the end is told, so that who loads again finds it.
                guard let chosen, chosen.storagePolicy != .notAllowed else { return then() }
                let kept = keeping.completed(chosen)
                DiskQueue.shared.async {
                    keeping.cache.storeCachedResponse(kept, for: keeping.request)
                    self.core.pool.execute(then)
                }
            })
    }
}

extension URLRequest {
    /// Under which its answer is kept.
    fileprivate var asGET: URLRequest {
        var request = self
        request.httpMethod = "GET"
        return request
    }
}

/// A response on its way into the cache: its content is gathered as it comes, up to a limit.
struct CacheWriter {
    let cache: URLCache
    let request: URLRequest
    let response: HTTPURLResponse
    let entry: CacheEntry
    /// Fields of the request as they were sent.
    private let sentFields: HTTPFields
    private let limit: Int
    private(set) var content: Data? = Data()

    /// - Returns: `nil` where the rules forbid to keep it, where it is no success (200 to 299), as on other platforms, or
    ///   where it is too large: a twentieth of the cache.
    init?(
        _ response: HTTPURLResponse, to request: URLRequest, sent: HTTPFields, requestTime: Date, cache: URLCache
    ) {
        let fields = response.httpFields
        guard (200...299).contains(response.statusCode),
            let method = HTTPRequest.Method(request.httpMethod ?? "GET"),
            Storability.evaluate(
                method: method, requestFields: sent, status: response.statusCode, fields: fields) == .storable
        else { return nil }
        self.limit = max(cache.memoryCapacity, cache.diskCapacity) / 20
        guard self.limit > 0, response.expectedContentLength <= Int64(self.limit) else { return nil }
        self.cache = cache
        self.request = request
        self.response = response
        self.sentFields = sent
        self.entry = CacheEntry(
            status: response.statusCode, fields: fields, requestFields: sent, requestTime: HTTPDate(requestTime),
            responseTime: HTTPDate(Date()))
    }

    mutating func append(_ data: Data) {
        guard let count = self.content?.count, count + data.count <= self.limit else {
            self.content = nil
            return
        }
        self.content?.append(data)
    }

    /// What would be kept; `nil` where it became too large.
    var proposal: CachedURLResponse? {
        self.content.map {
            CachedURLResponse(
                response: self.response, data: $0, storagePolicy: Self.policy(self.request), entry: self.entry)
        }
    }

    /// What is to be kept in the place of the proposal. One that the delegate made came when that did.
    func completed(_ chosen: CachedURLResponse) -> CachedURLResponse {
        guard chosen.exchange == nil, type(of: chosen) == CachedURLResponse.self else { return chosen }
        let fields = (chosen.response as? HTTPURLResponse)?.httpFields ?? [:]
        return chosen.with(
            CachedExchange(
                requestTime: self.entry.requestTime.seconds, responseTime: self.entry.responseTime.seconds,
                selection: VaryKey(response: fields, request: self.sentFields).values))
    }

    /// What came over TLS stays out of files.
    private static func policy(_ request: URLRequest) -> URLCache.StoragePolicy {
        request.url?.scheme?.withLoweredLetters == "https" ? .allowedInMemoryOnly : .allowed
    }
}

/// Gives out an answer that is there already: as it is pulled, in pieces.
final class StoredLoad: RequestLoad, @unchecked Sendable {
    private static let pieceSize = 256 << 10

    private let data: Data
    private let loader: TaskLoader
    private var position: Data.Index
    private var credit = 0
    private var isStopped = false
    private var isHeld = false
    private var isScheduled = false

    init(_ data: Data, for transfer: TaskLoader) {
        self.data = data
        self.loader = transfer
        self.position = data.startIndex
    }

    func start() {}
    func setPriority(_ priority: Float) {}

    func stop() { self.isStopped = true }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        if !isHeld, self.credit > 0 { self.scheduleDelivery() }
    }

    func pull(_ count: Int) {
        let (sum, overflow) = self.credit.addingReportingOverflow(count)
        self.credit = overflow ? .max : sum
        self.scheduleDelivery()
    }

    private func scheduleDelivery() {
        guard !self.isScheduled else { return }
        self.isScheduled = true
        self.loader.core.pool.executeLater { self.deliver() }
    }

    private func deliver() {
        self.isScheduled = false
        while self.credit > 0, !self.isStopped, !self.isHeld {
            let rest = self.data[self.position...]
            guard !rest.isEmpty else {
                self.isStopped = true
                return self.loader.finished()
            }
            let piece = Data(rest.prefix(min(self.credit, Self.pieceSize)))
            self.position += piece.count
            if self.credit != .max { self.credit -= piece.count }
            self.loader.received(piece, wireBytes: piece.count)
        }
    }
}
