import DequeModule
import Foundation
import HTTPSemantics
import HTTPTransport
import WireText

/// Loads by a `URLProtocol` of the program. Calls of the protocol, from any thread, are forwarded to the session's executor.
final class ProtocolLoad: NSObject, RequestLoad, @unchecked Sendable {  // Its vars are used on the loop only.
    private enum Stage {
        case loading(hasResponse: Bool)
        /// The protocol reported a redirect, on which the delegate decides. Later events, usually a cancellation error, are
        /// ignored.
        case redirected
        /// The protocol has ended; its content may still wait for demand.
        case finished(Result<Void, any Error>)
        /// The end is being passed to the loader, which takes time if the response is stored in the cache first.
        case completing
        case stopped
    }

    private let loader: TaskLoader
    private let type: URLProtocol.Type
    let request: URLRequest
    private let turns = ProtocolTurns.shared
    private var loading: URLProtocol?
    private var stage = Stage.loading(hasResponse: false)
    /// Content beyond the demand.
    private var pendingContent = Deque<Data>()
    private let backlog = ProtocolBacklog()
    private var cacheCandidate: (policy: URLCache.StoragePolicy, response: URLResponse, content: Data)?

    private init(_ type: URLProtocol.Type, request: URLRequest, loader: TaskLoader) {
        self.type = type
        self.request = request
        self.loader = loader
        super.init()
    }

    /// - Returns: `nil` if no registered protocol accepts the task.
    static func load(for request: URLRequest, body: TaskBody, loader: TaskLoader) -> ProtocolLoad? {
        let classes = self.classes(for: loader.core)
        guard !classes.isEmpty, let type = classes.first(where: { $0.canInit(with: loader.task) }) else { return nil }
        var builder = RequestBuilder(loader.core.configuration, loader.core.requestSettings)
        builder.isAtOriginalOrigin = loader.core.isAtOriginalOrigin(request, of: loader.task)
        let complete = builder.addingSessionFields(to: request).offeringStream(of: body)
        return ProtocolLoad(type, request: type.canonicalRequest(for: complete), loader: loader)
    }

    /// The classes that are asked, in this order.
    static func classes(for core: SessionCore) -> [URLProtocol.Type] {
        core.protocolClasses + (core.isShared ? URLProtocol.registeredClasses : [])
    }

    private var isLoading: Bool {
        if case .loading = self.stage { true } else { false }
    }

    private var isStopped: Bool {
        if case .stopped = self.stage { true } else { false }
    }

    // MARK: RequestLoad

    func start() {
        self.loader.requestChanged(self.request)
        let (cache, request, task) = (self.loader.core.configuration.urlCache, self.request, self.loader.task)
        self.turns.add {
            guard let cache else { return self.makeProtocol(nil) }
            cache.find(request, of: task) { found in self.turns.add { self.makeProtocol(found) } }
        }
    }

    /// In a turn of the protocols.
    private func makeProtocol(_ cachedResponse: CachedURLResponse?) {
        let loading = UncheckedTransfer(
            self.type.init(task: self.loader.task, cachedResponse: cachedResponse, client: self))
        self.loader.core.executor.execute {
            if !self.isStopped { self.loading = loading.value }
            self.turns.add { if self.mayStart(loading.value) { loading.value.startLoading() } }
        }
    }

    /// In a turn of the protocols: `false` if the load was stopped before the protocol started.
    private func mayStart(_ loading: URLProtocol) -> Bool { self.loading === loading }

    func stop() {
        guard !self.isStopped else { return }
        self.stage = .stopped
        self.pendingContent = []
        self.backlog.end()
        let loading = UncheckedTransfer(self.loading)
        self.turns.add {
            loading.value?.stopLoading()
            // Breaks the cycle: the protocol holds this object as its client.
            self.loading = nil
        }
    }

    func demandChanged() {
        self.loader.core.executor.executeLater { self.deliverPending() }
    }

    // MARK: On the loop

    private func onLoop(_ work: @escaping @Sendable (ProtocolLoad) -> Void) {
        self.loader.core.executor.execute {
            if self.isLoading { work(self) }
        }
    }

    private func deliverPending() {
        guard !self.isStopped, self.loader.demand > 0 else { return }
        while self.loader.demand > 0, let data = self.pendingContent.popFirst() {
            self.backlog.take(data.count)
            self.appendForCache(data)
            self.loader.received(data, wireBytes: data.count)
            if self.isStopped { return }
        }
        guard self.pendingContent.isEmpty, case .finished(let completion) = self.stage else { return }
        self.stage = .completing
        switch completion {
        case .success: self.storeInCache()
        case .failure(let error): self.loader.failed(error)
        }
    }

    private func finish(_ completion: Result<Void, any Error>) {
        guard !self.isStopped else { return }
        self.stage = .finished(completion)
        self.deliverPending()
    }

    /// Collects content for the cache, up to a twentieth of its capacity.
    private func appendForCache(_ data: Data) {
        guard let count = self.cacheCandidate?.content.count else { return }
        let cache = self.loader.core.configuration.urlCache
        let limit = cache.map { max($0.memoryCapacity, $0.diskCapacity) / 20 } ?? 0
        if count + data.count <= limit { self.cacheCandidate?.content.append(data) } else { self.cacheCandidate = nil }
    }

    private func storeInCache() {
        guard let candidate = self.cacheCandidate, candidate.policy != .notAllowed, self.loader.isCacheable,
            let cache = self.loader.core.configuration.urlCache
        else { return self.loader.finished() }
        self.cacheCandidate = nil
        let proposal = CachedURLResponse(
            response: candidate.response, data: candidate.content, storagePolicy: candidate.policy)
        let request = self.request
        self.loader.askToCache(
            proposal,
            self.loader.awaiting { loader, chosen in
                guard let chosen else { return loader.finished() }
                cache.queue.async {
                    cache.store(chosen, for: request, of: loader.task)
                    loader.core.executor.execute { loader.finished() }
                }
            })
    }

    /// Only these are stored in the cache, as for HTTP.
    private static func isSuccess(_ response: URLResponse) -> Bool {
        (response as? HTTPURLResponse).map { (200...299).contains($0.statusCode) } ?? true
    }

    /// Follows the redirect of a server, or of a protocol in its place, if the delegate allows it.
    private func redirected(_ response: HTTPURLResponse, to request: URLRequest) {
        guard self.loader.record.redirectCount < RedirectPolicy.limit else {
            return self.loader.failed(
                LoadFailure.error(.httpTooManyRedirects, url: self.request.url, text: "too many HTTP redirects"))
        }
        self.loader.countRedirect()
        // A protocol that forwards HTTP requests passes on where the server redirects to.
        let isByServer = ["http", "https"].contains(self.request.url?.scheme?.loweredASCII)
        self.loader.askRedirect(
            response, to: request,
            self.loader.awaiting { loader, chosen in
                if let chosen { return loader.restart(with: chosen, redirectedByServer: isByServer) }
                // The delegate declined it: the redirect is the response.
                self.respond(response, .notAllowed)
                self.finish(.success(()))
            })
    }

    /// Takes the first response; others are ignored.
    private func responseReceived(_ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        guard case .loading(hasResponse: false) = self.stage else { return }
        self.stage = .loading(hasResponse: true)
        self.respond(response, policy)
    }

    private func respond(_ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        if policy != .notAllowed, Self.isSuccess(response) { self.cacheCandidate = (policy, response, Data()) }
        self.loader.recordLocalTransaction(response, bytes: 0)
        self.loader.responseReceived(response)
    }
}

extension ProtocolLoad: URLProtocolClient {
    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
    ) {
        self.onLoop { load in
            guard case .loading(hasResponse: false) = load.stage else { return }
            load.stage = .redirected
            guard let response = redirectResponse as? HTTPURLResponse else {
                return load.loader.restart(with: request)
            }
            load.redirected(response, to: request)
        }
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
        self.onLoop { load in
            load.responseReceived(cachedResponse.response, .notAllowed)
            load.pendingContent.append(cachedResponse.data)
            load.finish(.success(()))
        }
    }

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        self.onLoop { $0.responseReceived(response, policy) }
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        let (backlog, count, patience) = (self.backlog, data.count, self.producerTimeout)
        let mayWait = patience > 0 && !backlog.hasCapacity(for: count)
        let isAccepted =
            mayWait
            ? self.turns.suspending { backlog.add(count, patience: patience) }
            : backlog.add(count, patience: patience)
        self.loader.core.executor.execute {
            guard self.isLoading else { return self.backlog.take(data.count) }
            guard isAccepted else { return self.failBacklogExceeded() }
            self.pendingContent.append(data)
            self.deliverPending()
        }
    }

    /// How long the calling thread may be blocked, in seconds: 0 for the threads that consume the content.
    private var producerTimeout: TimeInterval {
        let core = self.loader.core
        guard !core.executor.isCurrent, OperationQueue.current !== core.delegateQueue.queue else { return 0 }
        let timeout = self.request.chosenTimeout ?? core.configuration.timeoutIntervalForRequest
        return min(max(1, timeout), 3600)
    }

    private func failBacklogExceeded() {
        self.loader.failed(
            LoadFailure.error(
                .dataLengthExceedsMaximum, url: self.request.url,
                text: "The URLProtocol supplies content faster than it is consumed: more than 64 MiB are buffered."))
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
        self.onLoop { load in
            guard case .loading(hasResponse: false) = load.stage,
                load.pendingContent.isEmpty || !load.loader.startContentWithoutResponse()
            else { return load.finish(.success(())) }
            load.stage = .finished(.success(()))
            load.loader.finished()
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        self.onLoop { load in
            load.stage = .finished(.failure(error))
            load.loader.failed(LoadFailure.naming(load.request.url, in: error))
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        self.onLoop { load in
            load.loader.askChallenge(challenge) { reply in
                let sender = challenge.sender
                switch (reply.disposition, reply.credential) {
                case (.useCredential, let credential?): sender?.use(credential, for: challenge)
                case (.useCredential, nil): sender?.continueWithoutCredential(for: challenge)
                case (.performDefaultHandling, _): sender?.performDefaultHandling(for: challenge)
                case (.cancelAuthenticationChallenge, _): sender?.cancel(challenge)
                case (.rejectProtectionSpace, _): sender?.rejectProtectionSpaceAndContinue(with: challenge)
                }
            }
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {}
}

/// Counts the bytes that a `URLProtocol` has supplied and the load has not consumed. Above `limit` the supplying thread
/// blocks; a thread that must not block may exceed it up to `hardLimit`. Usable from any thread.
package final class ProtocolBacklog: @unchecked Sendable {  // Its vars are guarded by `condition`.
    /// Largest backlog, in bytes. A longer piece is accepted if the backlog is empty.
    package static let limit = 8 << 20
    /// Largest backlog, in bytes, if the supplying thread cannot be blocked.
    package static let hardLimit = 64 << 20

    private let condition = NSCondition()
    // Guarded by the condition's lock.
    private var queuedBytes = 0
    private var isEnded = false

    package init() {}

    /// Adds `count` bytes, blocking while the backlog is full.
    /// - Parameter timeout: longest time to block while nothing is consumed, in seconds; 0 never blocks.
    /// - Returns: `false` if the backlog would exceed `hardLimit`; the bytes are then not counted.
    package func add(_ count: Int, patience timeout: TimeInterval) -> Bool {
        self.condition.withLock {
            var seen = self.queuedBytes
            var deadline = Date(timeIntervalSinceNow: timeout)
            while timeout > 0, !self.hasCapacity(for: count, within: Self.limit), !self.isEnded {
                if !self.condition.wait(until: deadline), self.queuedBytes >= seen { break }
                if self.queuedBytes < seen { deadline = Date(timeIntervalSinceNow: timeout) }
                seen = self.queuedBytes
            }
            // After the end bytes are dropped, which is no error.
            guard !self.isEnded else { return true }
            guard self.hasCapacity(for: count, within: Self.hardLimit) else { return false }
            self.queuedBytes += count
            return true
        }
    }

    /// Whether `add` would not block now.
    package func hasCapacity(for count: Int) -> Bool {
        self.condition.withLock { self.hasCapacity(for: count, within: Self.limit) || self.isEnded }
    }

    private func hasCapacity(for count: Int, within limit: Int) -> Bool {
        self.queuedBytes == 0 || self.queuedBytes <= limit - min(count, limit)
    }

    /// Removes `count` consumed bytes from the backlog.
    package func take(_ count: Int) {
        self.condition.withLock {
            self.queuedBytes = max(0, self.queuedBytes - count)
            self.condition.broadcast()
        }
    }

    /// Unblocks all threads; `add` never blocks again.
    package func end() {
        self.condition.withLock {
            self.isEnded = true
            self.queuedBytes = 0
            self.condition.broadcast()
        }
    }
}
