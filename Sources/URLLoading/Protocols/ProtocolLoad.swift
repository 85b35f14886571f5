import DequeModule
import Foundation
import HTTPTransport

/// Loads by a `URLProtocol` of the program. What that tells, from any thread, is told on by the loop.
final class ProtocolLoad: NSObject, RequestLoad, @unchecked Sendable {
    private let loader: TaskLoader
    private let type: URLProtocol.Type
    let request: URLRequest
    private let queue = DispatchQueue(label: "URLLoading.protocol")
    private var loading: URLProtocol?
    private var isStopped = false
    /// Content for which nobody has asked yet.
    private var waiting = Deque<Data>()
    private let backlog = ProtocolBacklog()
    private var mayGive = false
    /// Bytes that are wanted; below zero where the last piece was longer.
    private var credit = 0
    private var isHeld = false
    private var hasResponse = false
    /// The protocol has sent the request elsewhere: what it tells afterwards, mostly that it gave up, is of no account.
    private var isRedirected = false
    private var ending: Result<Void, any Error>?
    /// The ending is on its way to the transfer, which may take a while: the cache comes first.
    private var isEnding = false
    private var keeping: (policy: URLCache.StoragePolicy, response: URLResponse, content: Data)?

    private init(_ type: URLProtocol.Type, request: URLRequest, loader: TaskLoader) {
        self.type = type
        self.request = request
        self.loader = loader
        super.init()
    }

    /// - Returns: `nil` where no protocol of the program takes the request.
    static func load(for request: URLRequest, loader: TaskLoader) -> ProtocolLoad? {
        let own = loader.core.protocolClasses
        guard !own.isEmpty || loader.core.isShared else { return nil }
        let classes = own + (loader.core.isShared ? URLProtocol.registeredClasses : [])
        guard let type = classes.first(where: { $0.canInit(with: loader.task) }) else { return nil }
        return ProtocolLoad(type, request: type.canonicalRequest(for: request), loader: loader)
    }

    // MARK: Loader

    func start() {
        self.loader.requestChanged(self.request)
        let (cache, request, task, type) = (
            self.loader.core.configuration.urlCache, self.request, self.loader.task, self.type
        )
        self.queue.async {
            let loading = Carried(
                type.init(task: task, cachedResponse: cache?.cachedResponse(for: request), client: self))
            self.loader.core.pool.execute {
                if !self.isStopped { self.loading = loading.value }
                self.queue.async { if self.begins(loading.value) { loading.value.startLoading() } }
            }
        }
    }

    /// On the protocol's queue: one that was stopped before it began never begins.
    private func begins(_ loading: URLProtocol) -> Bool { self.loading === loading }

    func stop() {
        guard !self.isStopped else { return }
        self.isStopped = true
        self.waiting = []
        self.backlog.end()
        let loading = Carried(self.loading)
        self.queue.async {
            loading.value?.stopLoading()
            // It holds this as its client.
            self.loading = nil
        }
    }

    func pull(_ count: Int) {
        self.mayGive = true
        let (sum, overflow) = self.credit.addingReportingOverflow(count)
        self.credit = overflow ? .max : sum
        self.loader.core.pool.executeLater { self.giveOut() }
    }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        if !isHeld { self.giveOut() }
    }

    func setPriority(_ priority: Float) {}

    // MARK: On the loop

    private func onLoop(_ work: @escaping @Sendable (ProtocolLoad) -> Void) {
        self.loader.core.pool.execute {
            guard !self.isStopped, !self.isRedirected, self.ending == nil else { return }
            work(self)
        }
    }

    private func giveOut() {
        guard self.mayGive, !self.isHeld, !self.isStopped else { return }
        while self.credit > 0, let data = self.waiting.popFirst() {
            if self.credit != .max { self.credit -= data.count }
            self.backlog.take(data.count)
            self.gather(data)
            self.loader.received(data, wireBytes: data.count)
            if self.isStopped { return }
        }
        guard self.waiting.isEmpty, let ending = self.ending, !self.isEnding else { return }
        self.isEnding = true
        switch ending {
        case .success: self.keep()
        case .failure(let error): self.loader.failed(error)
        }
    }

    /// For the cache, up to a twentieth of it.
    private func gather(_ data: Data) {
        guard let count = self.keeping?.content.count else { return }
        let cache = self.loader.core.configuration.urlCache
        let limit = cache.map { max($0.memoryCapacity, $0.diskCapacity) / 20 } ?? 0
        if count + data.count <= limit { self.keeping?.content.append(data) } else { self.keeping = nil }
    }

    private func keep() {
        guard let keeping = self.keeping, keeping.policy != .notAllowed, self.loader.isCacheable,
            let cache = self.loader.core.configuration.urlCache
        else { return self.loader.finished() }
        self.keeping = nil
        let proposal = CachedURLResponse(
            response: keeping.response, data: keeping.content, storagePolicy: keeping.policy)
        let request = self.request
        self.loader.askToCache(
            proposal,
            self.loader.awaiting { transfer, chosen in
                guard let chosen else { return transfer.finished() }
                DiskQueue.shared.async {
                    cache.storeCachedResponse(chosen, for: request)
                    transfer.core.pool.execute { transfer.finished() }
                }
            })
    }

    /// What else a protocol may say, only these are kept, as those of HTTP.
    private static func isSuccess(_ response: URLResponse) -> Bool {
        (response as? HTTPURLResponse).map { (200...299).contains($0.statusCode) } ?? true
    }

    private func respond(_ response: URLResponse, _ policy: URLCache.StoragePolicy) {
        guard !self.hasResponse else { return }
        self.hasResponse = true
        if policy != .notAllowed, Self.isSuccess(response) { self.keeping = (policy, response, Data()) }
        self.loader.recordLocalTransaction(response, bytes: 0)
        self.loader.responseReceived(response)
    }
}

extension ProtocolLoad: URLProtocolClient {
    func urlProtocol(
        _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
    ) {
        self.onLoop { load in
            guard !load.hasResponse else { return }
            load.isRedirected = true
            guard let response = redirectResponse as? HTTPURLResponse else {
                return load.loader.restart(with: request)
            }
            load.loader.countRedirect()
            load.loader.askRedirect(
                response, to: request,
                load.loader.awaiting { transfer, chosen in
                    if let chosen { return transfer.restart(with: chosen) }
                    load.respond(response, .notAllowed)
                    load.ending = .success(())
                    load.giveOut()
                })
        }
    }

    func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
        self.onLoop { load in
            load.respond(cachedResponse.response, .notAllowed)
            load.waiting.append(cachedResponse.data)
            load.ending = .success(())
            load.giveOut()
        }
    }

    func urlProtocol(
        _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        self.onLoop { $0.respond(response, policy) }
    }

    func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
        let isTaken = self.backlog.add(data.count, patience: self.patience)
        self.loader.core.pool.execute {
            guard !self.isStopped, !self.isRedirected, self.ending == nil else { return self.backlog.take(data.count) }
            guard isTaken else { return self.refuseMore() }
            self.waiting.append(data)
            self.giveOut()
        }
    }

    /// How long the calling thread may be held: those on which the content would be taken must not be.
    private var patience: TimeInterval {
        let core = self.loader.core
        guard !core.pool.isCurrent, OperationQueue.current !== core.delegateQueue.queue else { return 0 }
        let timeout = self.request.chosenTimeout ?? core.configuration.timeoutIntervalForRequest
        return min(max(1, timeout), 3600)
    }

    private func refuseMore() {
        self.loader.failed(
            LoadFailure.error(
                .dataLengthExceedsMaximum, url: self.request.url,
                text: "The protocol brings content that nobody takes: more than 64 MiB of it wait."))
    }

    func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
        self.onLoop { load in
            load.ending = .success(())
            if !load.hasResponse { return load.loader.finished() }
            load.giveOut()
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error) {
        self.onLoop { load in
            load.ending = .failure(error)
            load.loader.failed(error)
        }
    }

    func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        self.onLoop { load in
            load.loader.askChallenge(challenge) { answer in
                let sender = challenge.sender
                switch (answer.disposition, answer.credential) {
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

/// How much of what a protocol of the program has brought waits to be taken. The thread that brings more than there is
/// room for waits in line; one that must not wait is taken up to a higher limit. Usable from any thread.
package final class ProtocolBacklog: @unchecked Sendable {
    /// Bytes that may wait. A piece that is longer waits alone.
    package static let limit = 8 << 20
    /// Bytes that may wait where who brings them cannot be held.
    package static let hardLimit = 64 << 20

    private let condition = NSCondition()
    // Under the condition's lock, as all below.
    private var waiting = 0
    private var isOver = false

    package init() {}

    /// Counts `count` bytes that were brought, once there is room for them.
    /// - Parameter patience: how long the calling thread waits at most while nothing is taken, in seconds; 0 for not at
    ///   all.
    /// - Returns: `false` where more would wait than ever may; they are not counted then.
    package func add(_ count: Int, patience: TimeInterval) -> Bool {
        self.condition.withLock {
            var seen = self.waiting
            var deadline = Date(timeIntervalSinceNow: patience)
            while patience > 0, !self.hasRoom(for: count, within: Self.limit), !self.isOver {
                if !self.condition.wait(until: deadline), self.waiting >= seen { break }
                if self.waiting < seen { deadline = Date(timeIntervalSinceNow: patience) }
                seen = self.waiting
            }
            // What is brought behind the end is dropped, and not to be complained of.
            guard !self.isOver else { return true }
            guard self.hasRoom(for: count, within: Self.hardLimit) else { return false }
            self.waiting += count
            return true
        }
    }

    private func hasRoom(for count: Int, within limit: Int) -> Bool {
        self.waiting == 0 || self.waiting <= limit - min(count, limit)
    }

    /// So many bytes wait no more.
    package func take(_ count: Int) {
        self.condition.withLock {
            self.waiting = max(0, self.waiting - count)
            self.condition.broadcast()
        }
    }

    /// Nobody waits from now on.
    package func end() {
        self.condition.withLock {
            self.isOver = true
            self.waiting = 0
            self.condition.broadcast()
        }
    }
}
