import Foundation
import HTTPSemantics
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine
import WireText

/// The state that the tasks of one session share. Thread-safe; loads run on `executor`.
final class SessionCore: Sendable {
    enum Phase {
        case open
        /// No new tasks; the delegate is notified and released when the last task has ended.
        case finishing
        case invalid
    }

    struct State {
        var phase = Phase.open
        /// Whether the tasks that were there at the invalidation were cancelled.
        var hasCancelled = false
        var delegate: DelegateProxy?
        var tasks: [Int: URLSessionTask] = [:]
        var lastIdentifier = 0
        var label: String?
        var tlsContext: Result<TLSContext, TLSFailure>?
        var http11TLSContext: Result<TLSContext, TLSFailure>?
        var streamTLSContext: Result<TLSContext, TLSFailure>?
        var proxyTLSContext: Result<TLSContext, TLSFailure>?
        var failedProxies = FailedProxies()
        /// Of a background session, until it is invalid.
        var background: BackgroundSession?
    }

    /// The session's own copy, which never changes.
    let configuration: URLSessionConfiguration
    let requestSettings: RequestSettings
    let networkSettings: NetworkSettings
    let executor: SessionExecutor
    let delegateQueue: DelegateQueue
    let protocolClasses: [URLProtocol.Type]
    private let sharedFlag = Atomic(false)
    let authorizations: ExecutorIsolated<AuthorizationCache>
    /// Those for proxies.
    let proxyAuthorizations: ExecutorIsolated<AuthorizationCache>
    let uploadVersions: ExecutorIsolated<UploadVersions>
    /// Fields sent with a request that has no fields of its own.
    let defaultFields: [FieldLine]
    /// Whether `defaultFields` contain an `Authorization` or a `Cookie`.
    private let hasOwnSecrets: Bool
    let proxies: ProxySettings
    let resourceTimer = ResourceTimer()
    let state: Mutex<State>

    init(
        _ configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, queue: OperationQueue?
    ) {
        self.configuration = configuration
        self.requestSettings = RequestSettings(configuration)
        self.networkSettings = NetworkSettings(configuration)
        self.protocolClasses = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
        self.proxies = ProxySettings(configuration)
        let defaultFields = RequestBuilder(configuration, self.requestSettings).defaultFields
        self.defaultFields = defaultFields
        self.hasOwnSecrets = defaultFields.contains { $0.isNamed("authorization") || $0.isNamed("cookie") }
        var settings = PoolSettings()
        settings.connectionsPerHost = max(1, configuration.httpMaximumConnectionsPerHost)
        if let permits = configuration.permitsAddress {
            settings.admits = { permits(URLSessionConfiguration.ServerAddress($0), $1) }
        }
        settings.resolve = configuration.resolve
        if let resolve = configuration.resolveAuthenticated { settings.resolveAuthenticated = resolve }
        let executor = SessionExecutor(settings, on: configuration.loop)
        self.executor = executor
        self.authorizations = ExecutorIsolated(AuthorizationCache(), to: executor)
        self.proxyAuthorizations = ExecutorIsolated(AuthorizationCache(), to: executor)
        self.uploadVersions = ExecutorIsolated(UploadVersions(), to: executor)
        self.delegateQueue = DelegateQueue(queue, executor)
        self.state = Mutex(State(delegate: delegate.map { DelegateProxy($0) }))
    }

    /// Whether this is `URLSession.shared`, which cannot be invalidated and uses the registered protocol classes.
    var isShared: Bool { self.sharedFlag.load(ordering: .relaxed) }

    func markShared() { self.sharedFlag.store(true, ordering: .relaxed) }

    var delegate: DelegateProxy? { self.state.withLock { $0.delegate } }

    /// The task's delegate, then the session's.
    func delegates(for task: URLSessionTask) -> [DelegateProxy] {
        let (own, shared) = (task.metadata.withLock { $0.delegate }, self.delegate)
        return own == nil && shared == nil ? [] : [own, shared].compactMap(\.self)
    }

    /// Permits addresses for stream and WebSocket tasks; `nil` permits all.
    func permission(for host: String) -> ConnectAttempt.Permission? {
        guard let permits = self.configuration.permitsAddress else { return nil }
        return { address in permits(URLSessionConfiguration.ServerAddress(address), host) }
    }

    /// Looks up the server's name for a stream or WebSocket task; `nil` leaves that to the system or a proxy.
    /// - Parameter request: its own setting counts too.
    func resolveServer(for request: URLRequest? = nil) -> ConnectAttempt.Resolve? {
        let isRequired = self.networkSettings.requiresDNSSEC || request?.requiresDNSSECValidation == true
        return isRequired ? self.configuration.resolveAuthenticated ?? PoolSettings().resolveAuthenticated : nil
    }

    // MARK: Background sessions

    var background: BackgroundSession? { self.state.withLock { $0.background } }

    /// Attaches a background session to the daemon; does nothing for others.
    func openBackground(for session: URLSession) {
        guard let identifier = self.configuration.identifier else { return }
        let background = BackgroundSession(identifier, of: self)
        self.state.withLock { $0.background = background }
        background.begin(for: session)
    }

    func closeBackground() {
        let background = self.state.withLock { state in
            defer { state.background = nil }
            return state.background
        }
        background?.close()
    }

    // MARK: TLS contexts

    /// The context of HTTP connections.
    func tlsContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock {
            $0.tlsContext ?? $0.makeContext(\.tlsContext, self.configuration, protocols: ["h2", "http/1.1"])
        }
    }

    /// The context of WebSocket connections and of requests for an upgrade, which HTTP/2 does not have (RFC 9113 §8.6).
    func http11TLSContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock {
            $0.http11TLSContext ?? $0.makeContext(\.http11TLSContext, self.configuration, protocols: ["http/1.1"])
        }
    }

    /// The context of stream tasks, whose protocol is the program's own: it offers no application protocol.
    func streamTLSContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock {
            $0.streamTLSContext ?? $0.makeContext(\.streamTLSContext, self.configuration, protocols: [])
        }
    }

    /// The context of connections to proxies.
    func proxyTLSContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock {
            $0.proxyTLSContext ?? $0.makeContext(\.proxyTLSContext, self.configuration, protocols: ["http/1.1"])
        }
    }

    // MARK: Connections

    /// Makes later requests use new connections and new TLS sessions.
    func forgetConnections() {
        self.executor.pool?.retireConnections()
        self.state.withLock { state in
            state.tlsContext = nil
            state.http11TLSContext = nil
            state.streamTLSContext = nil
            state.proxyTLSContext = nil
        }
        self.executor.execute {
            self.authorizations.value = AuthorizationCache()
            self.proxyAuthorizations.value = AuthorizationCache()
        }
    }

    // MARK: Tasks

    /// - Returns: whether the task may load; it is then retained until `taskEnded`.
    func register(_ task: URLSessionTask) -> Bool {
        self.state.withLock { state in
            guard case .open = state.phase else { return false }
            state.tasks[task.taskIdentifier] = task
            return true
        }
    }

    func nextIdentifier() -> Int {
        self.state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }

    /// Replaces the registered task that has the same identifier.
    func replace(with task: URLSessionTask) {
        let wasCancelled = self.state.withLock { state in
            state.tasks[task.taskIdentifier] = task
            return state.hasCancelled
        }
        if wasCancelled { task.cancel() }
    }

    var liveTasks: [URLSessionTask] {
        let tasks = self.state.withLock { $0.tasks.values.sorted { $0.taskIdentifier < $1.taskIdentifier } }
        return tasks.filter { $0.metadata.withLock { $0.state == .running || $0.state == .suspended } }
    }

    /// On the delegate queue, after the task's last call.
    func taskEnded(_ task: URLSessionTask, of session: URLSession) {
        let isLast = self.state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            return state.phase == .finishing && state.tasks.isEmpty
        }
        if isLast { self.becomeInvalid(session) }
    }

    /// Completes a task with a connection of its own and makes its last calls: metrics, then completion.
    func notifyEnd(
        of task: URLSessionTask, _ error: URLError?, _ record: TaskMetricsRecord, session: URLSession
    ) {
        let endedAt = ContinuousInstant.now
        self.delegateQueue.add(of: task) {
            let error = task.finalError(error)
            task.complete(error)
            let delegates = self.delegates(for: task)
            delegates.notifyFirst(.metrics) { delegate in
                let metrics = record.metrics(completedAt: endedAt)
                delegate.task?.urlSession(session, task: task, didFinishCollecting: metrics)
            }
            delegates.notifyFirst(.completion) { delegate in
                delegate.task?.urlSession(session, task: task, didCompleteWithError: error)
            }
            task.metadata.withLock { $0.delegate = nil }
            self.taskEnded(task, of: session)
        }
    }

    /// Completes a task without a delegate call.
    func endSilently(_ task: URLSessionTask, session: URLSession) {
        self.delegateQueue.add(of: task) {
            task.mutate(\.state) { $0.state = .completed }
            task.metadata.withLock { $0.delegate = nil }
            self.taskEnded(task, of: session)
        }
    }

    // MARK: Invalidation

    /// - Parameter cancels: whether to cancel the live tasks.
    func invalidate(_ session: URLSession, cancels: Bool) {
        guard !self.isShared else { return }
        let (tasks, isLast) = self.state.withLock { state in
            guard state.phase != .invalid else { return ([URLSessionTask](), false) }
            let isFirst = state.phase == .open
            state.phase = .finishing
            if cancels { state.hasCancelled = true }
            return (state.tasks.values.sorted { $0.taskIdentifier < $1.taskIdentifier }, isFirst && state.tasks.isEmpty)
        }
        if isLast { return self.becomeInvalid(session) }
        if cancels { for task in tasks { task.cancel() } }
    }

    /// Makes a background session invalid; its tasks continue in the daemon.
    func detach(_ session: URLSession) {
        guard self.configuration.identifier != nil else { return }
        self.state.withLock { $0.tasks = [:] }
        self.becomeInvalid(session)
    }

    private func becomeInvalid(_ session: URLSession) {
        let isFirst = self.state.withLock { state in
            defer { state.phase = .invalid }
            return state.phase != .invalid
        }
        guard isFirst else { return }
        self.executor.close()
        self.closeBackground()
        self.delegateQueue.add {
            if let delegate = self.delegate {
                _ = delegate.notify(.becameInvalid) {
                    delegate.delegate.urlSession(session, didBecomeInvalidWithError: nil)
                }
            }
            self.state.withLock { $0.delegate = nil }
        }
    }

    // MARK: Unsupported settings

    /// The error of stream and WebSocket tasks of a background session.
    func refusal(of url: URL?) -> URLError? {
        guard self.configuration.identifier != nil else { return nil }
        return LoadFailure.error(
            .unsupportedURL, url: url, text: "A background session has no stream and WebSocket tasks.")
    }

    /// The error of a data, upload or download task that a background session cannot have.
    func refusal(
        of task: URLSessionTask, _ body: TaskBody, _ consumer: LoadConsumer, hasDelegate: Bool
    ) -> URLError? {
        guard self.configuration.identifier != nil else { return nil }
        let url = task.originalRequest?.url
        let problem: String?
        if !consumer.isDelegate {
            problem = "has no completion handlers and no asynchronous methods: use a delegate."
        } else if hasDelegate {
            problem = "has no delegates of single tasks: use the session's."
        } else if !(task is URLSessionDataTask || task is URLSessionDownloadTask) {
            problem = "has no tasks of this kind."
        } else if task is URLSessionUploadTask {
            if case .file = body { problem = nil } else { problem = "uploads files only." }
        } else if case .stream = body, task is URLSessionDownloadTask {
            problem = "has no downloads whose request has a body stream."
        } else {
            problem = nil
        }
        if let problem { return LoadFailure.error(.unsupportedURL, url: url, text: "A background session \(problem)") }
        let isTransfer = task is URLSessionUploadTask || task is URLSessionDownloadTask
        guard isTransfer, let scheme = url?.scheme?.lowercased(), scheme != "http", scheme != "https" else {
            return nil
        }
        return LoadFailure.error(
            .unsupportedURL, url: url, text: "A background session transfers http and https URLs only.")
    }

    // MARK: Redirects

    /// Whether the request still goes to the origin of the task's original request. Checked only if the session has
    /// fields of its own that no other origin may get.
    func isAtOriginalOrigin(_ request: URLRequest, of task: URLSessionTask) -> Bool {
        guard self.hasOwnSecrets else { return true }
        guard let original = task.metadata.withLock({ $0.originalRequest?.url }).flatMap({ HTTPSemantics.Origin($0) }),
            let origin = request.url.flatMap({ HTTPSemantics.Origin($0) })
        else { return false }
        return RedirectPolicy.isSameOrigin(original, origin)
    }

    /// - Parameter answer: called once, on any thread, with the request to follow, or `nil` to stop here; `request` if
    ///   no delegate answers. Not called after the end of the task.
    func askRedirect(
        _ response: HTTPURLResponse, to request: URLRequest, about task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let delegateRequest = DelegateRequest<URLRequest?>(
            method: .redirection, asyncMethod: .redirectionAsync,
            call: { delegate, handler in
                delegate.task?.urlSession(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: request
                ) { handler($0) }
            },
            callAsync: { delegate in
                await delegate.task?.urlSession(
                    session, task: task, willPerformHTTPRedirection: response, newRequest: request)
            })
        self.delegateQueue.ask(self.delegates(for: task), about: task, delegateRequest) { answer($0 ?? request) }
    }

    // MARK: Cookies

    /// A cookie storage of a custom class. It is asked for each task and may answer asynchronously.
    private var customCookieStorage: HTTPCookieStorage? {
        guard let storage = self.requestSettings.cookieStorage, type(of: storage) != HTTPCookieStorage.self
        else { return nil }
        return storage
    }

    /// Whether `askForCookies` must be called; otherwise the cookies are read from the storage.
    func asksForCookies(of request: URLRequest) -> Bool {
        self.customCookieStorage != nil && request.httpShouldHandleCookies && self.requestSettings.sendsCookies
    }

    /// - Parameters:
    ///   - task: its current request is the one to be sent.
    ///   - answer: called once, on any thread.
    func askForCookies(of task: URLSessionTask, _ answer: @escaping @Sendable ([HTTPCookie]) -> Void) {
        let handler = OneShotHandler<[HTTPCookie]?> { answer($0 ?? []) }
        guard let storage = self.customCookieStorage else { return handler(nil) }
        // A storage that blocks must not stop the other tasks.
        storage.queue.async { storage.getCookiesFor(task) { handler($0) } }
    }

    /// Stores the cookies of a response, if the request, the session and the cookie policy allow it.
    func storeCookies(_ lines: [FieldLine], from url: URL, request: URLRequest, of task: URLSessionTask) {
        guard let storage = self.customCookieStorage else {
            return RequestBuilder.storeCookies(lines, from: url, request: request, configuration: self.configuration)
        }
        let policy = self.configuration.httpCookieAcceptPolicy
        let cookieRequest = CookieRequest(url, mainDocumentURL: request.mainDocumentURL)
        guard request.httpShouldHandleCookies, policy != .never,
            policy == .always || cookieRequest?.isSameSite == true
        else { return }
        let cookies = RequestBuilder.cookies(lines, from: url)
        if !cookies.isEmpty { storage.storeCookies(cookies, for: task) }
    }
}

/// What each request needs of the session's configuration. Its own properties are open to subclasses, so that reading one
/// is a dynamic call.
struct RequestSettings {
    let cachePolicy: URLRequest.CachePolicy
    let cache: URLCache?
    let cookieStorage: HTTPCookieStorage?
    let sendsCookies: Bool
    let requestTimeout: TimeInterval
    let resourceTimeout: TimeInterval
    let usesPipelining: Bool
    let serviceType: URLRequest.NetworkServiceType
    let unixSocketPath: String?
    let assumesHTTP2: Bool

    init(_ configuration: URLSessionConfiguration) {
        self.cachePolicy = configuration.requestCachePolicy
        self.cache = configuration.urlCache
        self.cookieStorage = configuration.httpCookieStorage
        self.sendsCookies = configuration.httpShouldSetCookies
        self.requestTimeout = configuration.timeoutIntervalForRequest
        self.resourceTimeout = configuration.timeoutIntervalForResource
        self.usesPipelining = configuration.httpShouldUsePipelining
        self.serviceType = configuration.networkServiceType
        self.unixSocketPath = configuration.unixSocketPath
        self.assumesHTTP2 = configuration.assumesHTTP2
    }

    /// The idle timeout of `request`: its own, or the session's.
    func timeout(of request: URLRequest) -> Duration {
        Duration(timeout: request.chosenTimeout ?? self.requestTimeout)
    }

    /// From the request's service type, or else the session's.
    func trafficClass(for request: URLRequest) -> TrafficClass {
        let own = request.networkServiceType
        return (own == .default ? self.serviceType : own).trafficClass
    }
}

extension SessionCore.State {
    /// Creates a context and keeps it.
    /// - Parameter protocols: offered by ALPN, the preferred one first.
    fileprivate mutating func makeContext(
        _ path: WritableKeyPath<Self, Result<TLSContext, TLSFailure>?>, _ configuration: URLSessionConfiguration,
        protocols: [String]
    ) -> Result<TLSContext, TLSFailure> {
        let context = Result { () throws(TLSFailure) in
            var settings = try TLSConfiguration(configuration)
            settings.applicationProtocols = protocols
            settings.delegatesVerification = true
            settings.delegatesClientCertificate = true
            return try TLSContext(settings)
        }
        self[keyPath: path] = context
        return context
    }
}

extension TLSConfiguration {
    /// The TLS settings of a session. Versions below 1.2 are never used, even if the minimum allows them.
    /// - Throws: `.configuration` if no supported version lies between the minimum and the maximum.
    fileprivate init(_ configuration: URLSessionConfiguration) throws(TLSFailure) {
        let (lowest, highest) = (
            configuration.tlsMinimumSupportedProtocolVersion, configuration.tlsMaximumSupportedProtocolVersion
        )
        guard [.TLSv10, .TLSv11, .TLSv12, .TLSv13].contains(lowest), [.TLSv12, .TLSv13].contains(highest),
            lowest.rawValue <= highest.rawValue
        else {
            throw TLSFailure(
                .configuration,
                reasons: [
                    "Only TLS 1.2 and 1.3 are supported, and neither lies between tlsMinimumSupportedProtocolVersion "
                        + "(\(lowest)) and tlsMaximumSupportedProtocolVersion (\(highest))"
                ])
        }
        self = .client()
        self.minimumVersion = lowest == .TLSv13 ? .tls13 : .tls12
        self.maximumVersion = highest == .TLSv13 ? .tls13 : .tls12
        if let authorities = configuration.certificateAuthorities {
            self.trust = .only([.pem([UInt8](authorities))])
        }
    }
}

/// Challenges. Those of a TLS handshake and of connection-based schemes go to the session's method first and then to
/// the task's; those of a request go to the task's method only.
extension SessionCore {
    private static let sessionWideMethods: Set<String> = [
        NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate,
        NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
    ]

    /// - Parameter answer: called once, on any thread; synchronously if no delegate can answer. After the end of the task
    ///   the challenge is cancelled.
    func ask(
        _ challenge: URLAuthenticationChallenge, about task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (ChallengeAnswer) -> Void
    ) {
        let handler = OneShotHandler(answer)
        (challenge.sender as? ChallengeSender)?.forward(to: handler)
        let delegates = self.delegates(for: task)
        let taskRequest = DelegateRequest<ChallengeAnswer>(
            method: .taskChallenge, asyncMethod: .taskChallengeAsync,
            call: { delegate, handler in
                delegate.task?.urlSession(session, task: task, didReceive: challenge) { disposition, credential in
                    handler(ChallengeAnswer(disposition: disposition, credential: credential))
                }
            },
            callAsync: { delegate in
                guard let delegate = delegate.task else { return .none }
                let (disposition, credential) = await delegate.urlSession(session, task: task, didReceive: challenge)
                return ChallengeAnswer(disposition: disposition, credential: credential)
            })
        guard Self.sessionWideMethods.contains(challenge.protectionSpace.authenticationMethod) else {
            return self.delegateQueue.ask(delegates, about: task, taskRequest, late: .cancel) { handler($0 ?? .none) }
        }
        let sessionRequest = DelegateRequest<ChallengeAnswer>(
            method: .sessionChallenge, asyncMethod: .sessionChallengeAsync,
            call: { delegate, handler in
                delegate.delegate.urlSession(session, didReceive: challenge) { disposition, credential in
                    handler(ChallengeAnswer(disposition: disposition, credential: credential))
                }
            },
            callAsync: { delegate in
                let (disposition, credential) = await delegate.delegate.urlSession(session, didReceive: challenge)
                return ChallengeAnswer(disposition: disposition, credential: credential)
            })
        self.delegateQueue.ask(delegates, about: task, sessionRequest, taskRequest, late: .cancel) {
            handler($0 ?? .none)
        }
    }

    /// Asks whether to trust the certificate of a server or its proxy.
    /// - Parameters:
    ///   - proxy: whose certificate it is; `nil` for the server.
    ///   - answer: a rejection comes with the error that the load fails with.
    func askTrust(
        _ request: VerificationRequest, at url: URL, proxy: ProxyAddress? = nil, for task: URLSessionTask,
        of session: URLSession, _ answer: @escaping @Sendable (VerificationDecision, URLError?) -> Void
    ) {
        let trust = ServerTrust(request)
        let space =
            proxy.map { URLProtectionSpace(of: $0, trust: trust) }
            ?? URLProtectionSpace(
                host: url.serverName ?? "", port: url.port ?? 443, protocol: NSURLProtectionSpaceHTTPS, trust: trust)
        let rejection = Self.rejection(trust, request, url)
        self.ask(Self.challenge(space), about: task, of: session) { result in
            switch result.disposition {
            case .useCredential where result.credential?.trust != nil: answer(.accept, nil)
            // A credential without a trust says nothing about the server.
            case .useCredential, .performDefaultHandling:
                request.result.isValid ? answer(.accept, nil) : answer(.reject, rejection)
            case .cancelAuthenticationChallenge: answer(.reject, LoadFailure.error(.cancelled, url: url))
            case .rejectProtectionSpace: answer(.reject, rejection)
            }
        }
    }

    private static func rejection(_ trust: ServerTrust, _ request: VerificationRequest, _ url: URL) -> URLError {
        let isValid = request.result.isValid
        return LoadFailure.error(
            isValid ? .serverCertificateUntrusted : ServerTrust.failure(request.result.code), url: url,
            cause: isValid ? nil : TLSFailure(.verification(request.result), reasons: [request.result.description]),
            text: "The certificate of the server is not trusted: "
                + (isValid ? "the delegate rejected it." : "\(request.result)."),
            more: [NSURLErrorFailingURLPeerTrustErrorKey: trust])
    }

    /// Asks for a client certificate.
    /// - Parameters:
    ///   - issuers: DER names of the authorities whose certificates the server accepts.
    ///   - proxy: that asks for it; `nil` for the server.
    func askIdentity(
        _ issuers: [[UInt8]], at url: URL, proxy: ProxyAddress? = nil, for task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (TLSIdentity?, URLError?) -> Void
    ) {
        let names = issuers.map { Data($0) }
        let space =
            proxy.map { URLProtectionSpace(of: $0, issuers: names) }
            ?? URLProtectionSpace(
                host: url.serverName ?? "", port: url.port ?? 443, protocol: NSURLProtectionSpaceHTTPS, issuers: names)
        self.findCredential(for: space, of: task) { stored in
            self.ask(Self.challenge(space, proposing: stored), about: task, of: session) { result in
                switch result.disposition {
                case .useCredential: answer(result.credential?.identity?.identity, nil)
                case .performDefaultHandling: answer(stored?.identity?.identity, nil)
                case .rejectProtectionSpace: answer(nil, nil)
                case .cancelAuthenticationChallenge: answer(nil, LoadFailure.error(.cancelled, url: url))
                }
            }
        }
    }

    private static func challenge(
        _ space: URLProtectionSpace, proposing credential: URLCredential? = nil
    ) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: 0, failureResponse: nil,
            error: nil, sender: ChallengeSender())
    }
}
