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
            policy != .reload, policy != .reloadEverywhere
        else { return self.go(on: nil) }
        let key = self.request.asGET
        if !cache.mayHave(key) { return self.go(on: nil) }
        let found = self.awaiting { (load: HTTPLoad, found: CachedURLResponse?) in load.go(on: found) }
        DiskQueue.shared.async { found(cache.cachedResponse(for: key).map { cache.completed($0, for: key) }) }
    }

    private func go(on stored: CachedURLResponse?) {
        let policy = self.cachePolicy.meaning
        if let stored, stored.entry == nil {
            // It did not come over HTTP, or from a cache of the program's own: nothing is known of its age.
            if policy == .storedElseLoad || policy == .storedOnly { return self.give(stored) }
        }
        let decision = CacheDecision.decide(
            policy, method: self.method, fields: self.fields(toMatch: stored), entry: stored?.entry,
            now: HTTPDate(Date()))
        switch decision {
        case .useStored:
            guard let stored else { return self.send() }
            self.give(stored)
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
        let lines = self.dressing.fields(of: self.request, plain: self.core.plainFields.value)
        return HTTPFields(lines: lines.lazy.map { (name: $0.name, value: $0.value) })
    }

    private func give(_ stored: CachedURLResponse) {
        let now = ContinuousClock.now
        self.transfer.note(
            TransactionRecord(
                request: self.request, response: stored.response,
                source: .cache(LocalTimings(fetchStart: now, responseStart: now, responseEnd: now)),
                decodedBytes: Int64(stored.data.count)))
        self.transfer.give(stored.response, self.method == .head ? Data() : stored.data)
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
        self.moveOn()
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
        self.give(renewed)
        return true
    }

    /// Sees what a response means for the cache before its content comes.
    func beginKeeping(_ response: HTTPURLResponse) {
        self.keeping = nil
        guard let cache = self.core.configuration.urlCache, let attempt = self.attempt,
            let startedAt = attempt.startedAt
        else { return }
        self.forgetStale(response, cache)
        guard self.transfer.mayBeKept else { return }
        let sent = HTTPFields(lines: attempt.head.fields.lazy.map { (name: $0.name, value: $0.value) })
        self.keeping = CacheKeeping(
            response, to: self.request, sent: sent, requestTime: startedAt, cache: cache)
    }

    private func forgetStale(_ response: HTTPURLResponse, _ cache: URLCache) {
        guard CacheInvalidation.forgetsTarget(method: self.method, status: response.statusCode),
            let url = self.request.url, let origin = HTTPSemantics.Origin(url)
        else { return }
        let references = CacheInvalidation.references(
            method: self.method, status: response.statusCode, fields: response.httpFields)
        let targets = references.compactMap { URL(string: $0, relativeTo: url)?.absoluteURL }
            .filter { HTTPSemantics.Origin($0) == origin }
        DiskQueue.shared.async {
            for target in [url] + targets { cache.removeCachedResponse(for: URLRequest(url: target)) }
        }
    }

    /// Puts a whole response into the cache, if nobody objects; then goes on.
    func keep(_ then: @escaping @Sendable () -> Void) {
        guard let keeping = self.keeping, let proposal = keeping.proposal else { return then() }
        self.keeping = nil
        self.transfer.askToKeep(
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
