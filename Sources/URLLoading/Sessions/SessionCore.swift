import Foundation
import HTTPSemantics
import HTTPTransport
import SessionTasks
import StreamTransport
import Synchronization
import TLSEngine

/// What the tasks of one session share.
///
/// All that loads do happens on the event loop of `pool`, in order; what is here besides may be used from any thread.
final class SessionCore: Sendable {
    /// Whether tasks may be made, and what becomes of the delegate.
    enum Phase {
        case open
        /// No new tasks; when the last has ended the delegate is told and dropped.
        case finishing
        case invalid
    }

    struct State {
        var phase = Phase.open
        var delegate: DelegateProxy?
        var tasks: [Int: URLSessionTask] = [:]
        var lastIdentifier = 0
        var label: String?
        var tlsContext: Result<TLSContext, TLSFailure>?
        var streamTLSContext: Result<TLSContext, TLSFailure>?
    }

    /// The session's own: nobody changes it.
    let configuration: URLSessionConfiguration
    let pool: ConnectionPool
    let delegateQueue: DelegateQueue
    /// Those of the configuration.
    let protocolClasses: [URLProtocol.Type]
    /// The session of the program, which cannot be invalidated and asks the protocols that were registered.
    var isShared: Bool { self.sharedFlag.load(ordering: .relaxed) }
    private let sharedFlag = Atomic(false)
    /// On the loop: what was proven good for which part of which server.
    let authorizations = LoopState(AuthorizationCache())
    /// On the loop: what is sent along with a request that says nothing itself.
    let defaultFields: LoopState<[HeaderField]>
    /// Whether `plainFields` have an `Authorization`.
    let hasOwnAuthorization: Bool
    let proxies: ProxyPolicy
    let resourceTimer = ResourceTimer()
    let state: Mutex<State>

    init(
        _ configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, queue: OperationQueue?
    ) {
        self.configuration = configuration
        self.protocolClasses = (configuration.protocolClasses ?? []).compactMap { $0 as? URLProtocol.Type }
        self.proxies = ProxyPolicy(configuration)
        let plainFields = RequestBuilder(configuration).defaultFields
        self.defaultFields = LoopState(plainFields)
        self.hasOwnAuthorization = plainFields.contains { $0.isNamed("authorization") }
        var settings = PoolSettings()
        settings.connectionsPerHost = max(1, configuration.httpMaximumConnectionsPerHost)
        if let permits = configuration.permitsAddress {
            settings.admits = { permits(URLSessionConfiguration.ServerAddress($0), $1) }
        }
        if let resolve = configuration.resolve { settings.resolve = resolve }
        let pool = ConnectionPool(settings: settings)
        self.pool = pool
        self.delegateQueue = DelegateQueue(queue, pool)
        self.state = Mutex(State(delegate: delegate.map { DelegateProxy($0) }))
    }

    /// From now on this is the session of the program.
    func markShared() { self.sharedFlag.store(true, ordering: .relaxed) }

    var delegate: DelegateProxy? { self.state.withLock { $0.delegate } }

    /// The task's delegate, then the session's.
    func delegates(for task: URLSessionTask) -> [DelegateProxy] {
        let (own, shared) = (task.metadata.withLock { $0.delegate }, self.delegate)
        return own == nil && shared == nil ? [] : [own, shared].compactMap(\.self)
    }

    /// What stream and WebSocket tasks ask for each address of a host; `nil` permits all.
    func permission(for host: String) -> ConnectAttempt.Permission? {
        guard let permits = self.configuration.permitsAddress else { return nil }
        return { address in permits(URLSessionConfiguration.ServerAddress(address), host) }
    }

    /// One context for all connections of the session, until it forgets them.
    func tlsContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock { state in
            if let made = state.tlsContext { return made }
            let made = Result { () throws(TLSFailure) in try TLSContext(try TLSConfiguration.of(self.configuration)) }
            state.tlsContext = made
            return made
        }
    }

    /// The next request uses a new connection, and is verified anew.
    func forgetConnections() {
        self.pool.retireConnections()
        self.state.withLock { state in
            state.tlsContext = nil
            state.streamTLSContext = nil
        }
        self.pool.execute { self.authorizations.value = AuthorizationCache() }
    }
}

extension TLSConfiguration {
    /// What a session asks of TLS. Versions below 1.2 are not spoken: a minimum below allows them in vain.
    /// - Throws: `.configuration` where nothing that is spoken lies between the bounds.
    static func of(_ configuration: URLSessionConfiguration) throws(TLSFailure) -> TLSConfiguration {
        var result = TLSConfiguration.client()
        let (lowest, highest) = (
            configuration.tlsMinimumSupportedProtocolVersion, configuration.tlsMaximumSupportedProtocolVersion
        )
        guard [.TLSv10, .TLSv11, .TLSv12, .TLSv13].contains(lowest), [.TLSv12, .TLSv13].contains(highest),
            lowest.rawValue <= highest.rawValue
        else {
            throw TLSFailure(
                .configuration,
                reasons: [
                    "TLS 1.2 and 1.3 are spoken, and none of them lies between tlsMinimumSupportedProtocolVersion "
                        + "(\(lowest)) and tlsMaximumSupportedProtocolVersion (\(highest))"
                ])
        }
        result.minimumVersion = lowest == .TLSv13 ? .tls13 : .tls12
        result.maximumVersion = highest == .TLSv13 ? .tls13 : .tls12
        result.applicationProtocols = ["http/1.1"]
        if let authorities = configuration.certificateAuthorities {
            result.trust = .only([.pem([UInt8](authorities))])
        }
        result.delegatesVerification = true
        result.delegatesClientCertificate = true
        return result
    }
}

extension SessionCore {
    /// - Returns: whether the task may load; it is kept until `ended`.
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

    /// Puts another task in the place of one that it goes on with.
    func replace(with task: URLSessionTask) {
        self.state.withLock { $0.tasks[task.taskIdentifier] = task }
    }

    /// The last message of the task is behind us.
    func taskEnded(_ task: URLSessionTask, of session: URLSession) {
        let isLast = self.state.withLock { state in
            state.tasks[task.taskIdentifier] = nil
            return state.phase == .finishing && state.tasks.isEmpty
        }
        if isLast { self.becomeInvalid(session) }
    }

    var liveTasks: [URLSessionTask] {
        let tasks = self.state.withLock { $0.tasks.values.sorted { $0.taskIdentifier < $1.taskIdentifier } }
        return tasks.filter { $0.metadata.withLock { $0.state == .running || $0.state == .suspended } }
    }

    /// - Parameter cancels: whether tasks that live are cancelled.
    func invalidate(_ session: URLSession, cancels: Bool) {
        guard !self.isShared else { return }
        let (tasks, isLast) = self.state.withLock { state in
            guard state.phase != .invalid else { return ([URLSessionTask](), false) }
            let isFirst = state.phase == .open
            state.phase = .finishing
            return (Array(state.tasks.values), isFirst && state.tasks.isEmpty)
        }
        if isLast { return self.becomeInvalid(session) }
        if cancels { for task in tasks { task.cancel() } }
    }

    private func becomeInvalid(_ session: URLSession) {
        let isFirst = self.state.withLock { state in
            defer { state.phase = .invalid }
            return state.phase != .invalid
        }
        guard isFirst else { return }
        self.pool.close()
        self.delegateQueue.add {
            if let face = self.delegate {
                _ = face.notify(.becameInvalid) { face.delegate.urlSession(session, didBecomeInvalidWithError: nil) }
            }
            self.state.withLock { $0.delegate = nil }
        }
    }
}

/// Who is asked about a challenge: what concerns the session goes to its own method first and to the task's after it;
/// what concerns a request to the task's alone.
extension SessionCore {
    private static let sessionWideMethods: Set<String> = [
        NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate,
        NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
    ]

    /// - Parameter answer: called once, on any thread; at once where nobody can be asked.
    func ask(
        _ challenge: URLAuthenticationChallenge, about task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (ChallengeAnswer) -> Void
    ) {
        let faces = self.delegates(for: task)
        var questions: [DelegateRequest<ChallengeAnswer>] = []
        if Self.sessionWideMethods.contains(challenge.protectionSpace.authenticationMethod) {
            questions = faces.map { Self.sessionRequest($0, challenge, session) }
        }
        questions += faces.map { Self.taskRequest($0, challenge, task, session) }
        let once = OneShotHandler(answer)
        (challenge.sender as? ChallengeSender)?.answers(to: once)
        self.delegateQueue.ask(questions) { once($0 ?? .none) }
    }

    private static func sessionRequest(
        _ face: DelegateProxy, _ challenge: URLAuthenticationChallenge, _ session: URLSession
    ) -> DelegateRequest<ChallengeAnswer> {
        DelegateRequest(
            delegate: face, method: .sessionChallenge, asyncMethod: .sessionChallengeAsync,
            call: { face, once in
                face.delegate.urlSession(session, didReceive: challenge) { disposition, credential in
                    once(ChallengeAnswer(disposition: disposition, credential: credential))
                }
            },
            callAsync: { face in
                let (disposition, credential) = await face.delegate.urlSession(session, didReceive: challenge)
                return ChallengeAnswer(disposition: disposition, credential: credential)
            })
    }

    private static func taskRequest(
        _ face: DelegateProxy, _ challenge: URLAuthenticationChallenge, _ task: URLSessionTask, _ session: URLSession
    ) -> DelegateRequest<ChallengeAnswer> {
        DelegateRequest(
            delegate: face, method: .taskChallenge, asyncMethod: .taskChallengeAsync,
            call: { face, once in
                face.task?.urlSession(session, task: task, didReceive: challenge) { disposition, credential in
                    once(ChallengeAnswer(disposition: disposition, credential: credential))
                }
            },
            callAsync: { face in
                guard let delegate = face.task else { return .none }
                let (disposition, credential) = await delegate.urlSession(session, task: task, didReceive: challenge)
                return ChallengeAnswer(disposition: disposition, credential: credential)
            })
    }

    // MARK: TLS

    /// - Parameter answer: with a rejection goes the error that the load ends with.
    func askTrust(
        _ request: VerificationRequest, at url: URL, for task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (VerificationDecision, URLError?) -> Void
    ) {
        let (host, port) = Self.hostAndPort(url)
        let trust = ServerTrust(request)
        let space = URLProtectionSpace(host: host, port: port, protocol: NSURLProtectionSpaceHTTPS, trust: trust)
        let refusal = Self.refusal(trust, request, url)
        self.ask(Self.challenge(space), about: task, of: session) { told in
            switch told.disposition {
            case .useCredential where told.credential?.trust != nil: answer(.accept, nil)
            // A credential that is no trust says nothing about the server.
            case .useCredential, .performDefaultHandling:
                request.result.isValid ? answer(.accept, nil) : answer(.reject, refusal)
            case .cancelAuthenticationChallenge: answer(.reject, LoadFailure.error(.cancelled, url: url))
            case .rejectProtectionSpace: answer(.reject, refusal)
            }
        }
    }

    private static func refusal(_ trust: ServerTrust, _ request: VerificationRequest, _ url: URL) -> URLError {
        let isValid = request.result.isValid
        return LoadFailure.error(
            isValid ? .serverCertificateUntrusted : ServerTrust.failure(request.result.code), url: url,
            cause: isValid ? nil : TLSFailure(.verification(request.result), reasons: [request.result.description]),
            text: "The certificate of the server is not trusted: "
                + (isValid ? "the delegate rejected it." : "\(request.result)."),
            more: [NSURLErrorFailingURLPeerTrustErrorKey: trust])
    }

    /// - Parameter issuers: of whom the server accepts certificates, as DER names.
    func askIdentity(
        _ issuers: [[UInt8]], at url: URL, for task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (TLSIdentity?, URLError?) -> Void
    ) {
        let (host, port) = Self.hostAndPort(url)
        let space = URLProtectionSpace(
            host: host, port: port, protocol: NSURLProtectionSpaceHTTPS, issuers: issuers.map { Data($0) })
        let stored = self.configuration.urlCredentialStorage?.defaultCredential(for: space)
        self.ask(Self.challenge(space, proposing: stored), about: task, of: session) { told in
            switch told.disposition {
            case .useCredential: answer(told.credential?.identity?.identity, nil)
            case .performDefaultHandling: answer(stored?.identity?.identity, nil)
            case .rejectProtectionSpace: answer(nil, nil)
            case .cancelAuthenticationChallenge: answer(nil, LoadFailure.error(.cancelled, url: url))
            }
        }
    }

    private static func hostAndPort(_ url: URL) -> (host: String, port: Int) {
        (url.serverName ?? "", url.port ?? 443)
    }

    private static func challenge(
        _ space: URLProtectionSpace, proposing credential: URLCredential? = nil
    ) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: 0, failureResponse: nil,
            error: nil, sender: ChallengeSender())
    }
}

/// A cookie storage of a class of the program's own is asked for each task: it may take its time over the answer.
extension SessionCore {
    private var customCookieStorage: HTTPCookieStorage? {
        guard let storage = self.configuration.httpCookieStorage, type(of: storage) != HTTPCookieStorage.self
        else { return nil }
        return storage
    }

    /// Whether the cookies of a request are asked for; else they are taken from the storage.
    func asksForCookies(of request: URLRequest) -> Bool {
        self.customCookieStorage != nil && request.httpShouldHandleCookies && self.configuration.httpShouldSetCookies
    }

    /// - Parameters:
    ///   - task: whose current request is the one to be sent.
    ///   - answer: called once, on any thread.
    func askForCookies(of task: URLSessionTask, _ answer: @escaping @Sendable ([HTTPCookie]) -> Void) {
        let once = OneShotHandler<[HTTPCookie]?> { answer($0 ?? []) }
        guard let storage = self.customCookieStorage else { return once(nil) }
        storage.getCookiesFor(task) { once($0) }
    }

    /// Keeps the cookies of an answer, if the request, the session and the rules allow it.
    func storeCookies(_ lines: [HeaderField], from url: URL, request: URLRequest, of task: URLSessionTask) {
        guard lines.contains(where: { $0.isNamed("set-cookie") }) else { return }
        guard let storage = self.customCookieStorage else {
            return RequestBuilder.storeCookies(lines, from: url, request: request, configuration: self.configuration)
        }
        let policy = self.configuration.httpCookieAcceptPolicy
        let asks = CookieRequest(url, mainDocumentURL: request.mainDocumentURL)
        guard request.httpShouldHandleCookies, policy != .never, policy == .always || asks?.isSameSite == true
        else { return }
        let cookies = RequestBuilder.cookies(lines, from: url)
        if !cookies.isEmpty { storage.storeCookies(cookies, for: task) }
    }
}

extension SessionCore {
    /// Whether the request of a task still goes to the origin that the program named. Looked at only where something
    /// hangs on it: an `Authorization` of the session's own.
    func isAtOriginalOrigin(_ request: URLRequest, of task: URLSessionTask) -> Bool {
        guard self.hasOwnAuthorization else { return true }
        guard let first = task.metadata.withLock({ $0.originalRequest?.url }).flatMap({ HTTPSemantics.Origin($0) }),
            let origin = request.url.flatMap({ HTTPSemantics.Origin($0) })
        else { return false }
        return RedirectPolicy.isSameOrigin(first, origin)
    }

    /// Whether a redirect is followed, and by which request; it is where nobody is asked.
    /// - Parameter answer: called once, on any thread.
    func askRedirect(
        _ response: HTTPURLResponse, to request: URLRequest, about task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let questions = self.delegates(for: task).map { face in
            DelegateRequest<URLRequest?>(
                delegate: face, method: .redirection, asyncMethod: .redirectionAsync,
                call: { face, once in
                    face.task?.urlSession(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: request
                    ) { once($0) }
                },
                callAsync: { face in
                    await face.task?.urlSession(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: request)
                })
        }
        self.delegateQueue.ask(questions) { answer($0 ?? request) }
    }
}

/// What a configuration or a request asks for that is still to come, and that must not be passed over in silence.
extension SessionCore {
    /// Why a session cannot load at all.
    func refusal(of url: URL?) -> URLError? {
        guard self.configuration.identifier != nil else { return nil }
        return LoadFailure.error(
            .unsupportedURL, url: url, text: "Background sessions are not there yet: use another configuration.")
    }

    /// Why no connection is made for a request: asked anew for where a redirect leads to.
    func refusal(of request: URLRequest) -> URLError? {
        guard let url = request.url, let scheme = url.scheme?.withLoweredLetters else { return nil }
        return self.refusal(
            ofConnectionFor: url, scheme: scheme, requiresDNSSECValidation: request.requiresDNSSECValidation)
    }

    /// - Parameter scheme: as `ProxyChoice` takes it.
    func refusal(ofConnectionFor url: URL, scheme: String, requiresDNSSECValidation: Bool = false) -> URLError? {
        if requiresDNSSECValidation || self.configuration.requiresDNSSECValidation {
            return LoadFailure.error(
                .unsupportedURL, url: url,
                text: "Names are not validated by DNSSEC here: leave requiresDNSSECValidation false.")
        }
        return self.proxies.refusal(of: url, scheme: scheme)
    }
}

extension SessionCore {
    /// For connections whose protocol is the program's own: no protocol is offered in the handshake.
    func streamTLSContext() -> Result<TLSContext, TLSFailure> {
        self.state.withLock { state in
            if let made = state.streamTLSContext { return made }
            let made = Result { () throws(TLSFailure) in
                var configuration = try TLSConfiguration.of(self.configuration)
                configuration.applicationProtocols = []
                return try TLSContext(configuration)
            }
            state.streamTLSContext = made
            return made
        }
    }
}

extension ConnectionTaskDriver {
    /// How the connection is secured: the delegate is asked about the server, and for a certificate. From any thread.
    /// - Parameters:
    ///   - url: of the server, for the challenges.
    ///   - timeout: for the handshake, without the time that the delegate takes.
    func secureSettings(
        _ context: TLSContext, at url: URL, for task: URLSessionTask, timeout: Duration
    ) -> SecureSettings {
        var settings = SecureSettings(context: context, serverName: url.serverName)
        settings.timeout = timeout
        settings.resumptionKey = "\(url.serverName ?? ""):\(url.port ?? 443)"
        let life = self.life
        settings.decide = { request, answer in
            life.core.askTrust(request, at: url, for: task, of: life.session) { decision, refusal in
                // Before the handshake fails by it.
                life.loop.execute { life.verdict = life.verdict ?? refusal }
                answer(decision)
            }
        }
        settings.chooseIdentity = { issuers, answer in
            life.core.askIdentity(issuers, at: url, for: task, of: life.session) { identity, refusal in
                guard let refusal else { return answer(identity) }
                life.loop.execute { self.fail(refusal) }
            }
        }
        return settings
    }
}

extension SessionCore {
    /// The last messages of a task with a connection of its own: metrics, then the end.
    func notifyEnd(
        of task: URLSessionTask, _ error: URLError?, _ record: TaskMetricsRecord, session: URLSession
    ) {
        let endedAt = ContinuousClock.now
        self.delegateQueue.add {
            task.mutate(\.error) { $0.error = error }
            task.mutate(\.state) { $0.state = .completed }
            if error == nil { task.metadata.withLock { $0.progress }?.finish() }
            let faces = self.delegates(for: task)
            for face in faces where face.mayImplement(.metrics) {
                let metrics = record.metrics(completedAt: endedAt)
                if face.notify(.metrics, { face.task?.urlSession(session, task: task, didFinishCollecting: metrics) }) {
                    break
                }
            }
            for face in faces where face.mayImplement(.completion) {
                if face.notify(.completion, { face.task?.urlSession(session, task: task, didCompleteWithError: error) })
                {
                    break
                }
            }
            task.metadata.withLock { $0.delegate = nil }
            self.taskEnded(task, of: session)
        }
    }

    /// The end of a task that goes without a last message.
    func endSilently(_ task: URLSessionTask, session: URLSession) {
        self.delegateQueue.add {
            task.mutate(\.state) { $0.state = .completed }
            task.metadata.withLock { $0.delegate = nil }
            self.taskEnded(task, of: session)
        }
    }
}

/// Something that belongs to the event loop of a session, and is touched only there.
final class LoopState<Value>: @unchecked Sendable {
    var value: Value

    init(_ value: Value) {
        self.value = value
    }
}
