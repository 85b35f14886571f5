import Foundation
import GSSEngine
import HTTPSemantics
import HTTPTransport
import TLSEngine
import WireText

/// A request that is authenticated at its server or its proxy (RFC 9110 §11): of an HTTP load, or of an opening
/// handshake. Confined to the session's executor.
protocol ChallengedRequest: AnyObject, Sendable {
    var core: SessionCore { get }
    /// Whose delegates are asked; `nil` once the task is released.
    var challengedTask: (task: URLSessionTask, session: URLSession)? { get }
    /// The request as it is sent now; for a proxy, to the proxy itself.
    var request: URLRequest { get }
    var credentials: RequestCredentials { get set }
    /// Authorizations of earlier requests.
    var authorizations: ExecutorIsolated<AuthorizationCache> { get }
    /// Whether it is authenticated at a proxy.
    var isOfProxy: Bool { get }
    /// The connection that the latest challenge came on.
    var handshakeConnection: HandshakeConnection { get }

    func protectionSpace(of challenge: Challenge, at url: URL) -> URLProtectionSpace
    /// The credential of the configured account, which is proposed first; `nil` for none.
    func configuredCredential(at url: URL) -> URLCredential?
    /// The account that the program has configured for the request; `nil` for none.
    func account(at url: URL) -> ConfiguredAccount?
    /// Whether a request may be sent with what an earlier one was accepted with.
    func mayUse(_ authorization: Authorization, at url: URL) -> Bool

    /// Wraps `work` so that it runs on the loop, unless the request has moved on to another step.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (Self, Answer) -> Void) -> @Sendable (Answer) -> Void
}

/// The connection of a request, as far as NTLM and Negotiate need it.
struct HandshakeConnection {
    /// Whether each request of the task can be sent on the connection of the one before.
    var isKept = false
    /// Whether the connection is still there for the next request.
    var isOpen = false
    /// Whether the connection has served a request before.
    var isReused = false
    /// The leaf certificate of the server in DER; `nil` without TLS.
    var certificate: [UInt8]?
}

/// What one request has sent and tried. A redirect starts with new ones.
struct RequestCredentials {
    /// How often a request is sent again because the server calls its nonce stale, or because the connection of a
    /// handshake is lost.
    static let renewalLimit = 3

    /// Sent with the request, if not `nil`.
    fileprivate(set) var authorization: Authorization?
    /// Authenticates the connection that the request is sent on; `nil` before that is necessary.
    fileprivate(set) var handshake: TokenHandshake?
    /// Whether an earlier request left `authorization`: no challenge of this one has been answered.
    fileprivate var isPreemptive = false
    /// Such a credential that this request was refused with.
    fileprivate var refusedPreemptively: URLCredential?
    fileprivate var refusals = 0
    fileprivate var renewals = 0
    fileprivate var lastRefused: URLCredential?
    /// Sent, and to be stored if it is accepted.
    fileprivate var unstored: (credential: URLCredential, space: URLProtectionSpace)?

    /// The connection of the handshake is lost.
    /// - Returns: whether it may begin on another one.
    mutating func abandonHandshake() -> Bool {
        guard self.handshake != nil, self.renewals < Self.renewalLimit else { return false }
        self.renewals += 1
        self.handshake = nil
        return true
    }

    /// Another connection is opened, which needs a handshake of its own.
    mutating func dropHandshake() { self.handshake = nil }

    /// The identity of the connections that the request may be sent on; `nil` for connections that are not
    /// authenticated.
    var identity: ConnectionIdentity? { self.authorization?.connection?.identity }
}

/// What follows a 401 or 407.
enum ChallengeOutcome: Sendable {
    /// Sends the request again, with an authorization.
    case retry
    /// It is the final response.
    case refused
    case failed(URLError)
}

extension ChallengedRequest {
    var authorizations: ExecutorIsolated<AuthorizationCache> { self.core.authorizations }

    var isOfProxy: Bool { false }

    func protectionSpace(of challenge: Challenge, at url: URL) -> URLProtectionSpace {
        URLProtectionSpace(challenge, at: url)
    }

    func configuredCredential(at url: URL) -> URLCredential? {
        self.account(at: url).map {
            URLCredential(user: $0.user, password: $0.password, persistence: .forSession)
        }
    }

    func account(at url: URL) -> ConfiguredAccount? { ConfiguredAccount(url) }

    /// A URL without a user gets what its server has accepted.
    func mayUse(_ authorization: Authorization, at url: URL) -> Bool {
        if let account = self.account(at: url) { return authorization.account == account }
        return url.namedUser.map { $0 == authorization.credential.user } ?? true
    }

    /// Sets the `Authorization` of the request about to be sent, unless the program has set its own.
    func authorize(_ builder: inout RequestBuilder, _ url: URL, method: String, target: String, body: TaskBody) {
        guard self.request.value(forHTTPHeaderField: "Authorization") == nil || self.credentials.authorization != nil
        else { return }
        builder.authorization = self.fieldValue(at: url, method: method, target: target) {
            body.contentHash($0)
        }
    }

    /// The value of the authorization field for the next request; `nil` if none is known.
    func fieldValue(
        at url: URL, method: String, target: String, contentHash: (DigestHasher) -> String?
    ) -> String? {
        guard let authorization = self.knownAuthorization(at: url) else { return nil }
        if self.credentials.authorization == nil { self.credentials.isPreemptive = true }
        self.credentials.authorization = authorization
        if let handshake = self.credentials.handshake { return handshake.takeFieldValue() }
        return authorization.fieldValue(
            method: method, target: target, contentHash: authorization.contentHasher.flatMap(contentHash))
    }

    private func knownAuthorization(at url: URL) -> Authorization? {
        if let authorization = self.credentials.authorization { return authorization }
        guard !self.authorizations.value.isEmpty, let origin = HTTPSemantics.Origin(url) else { return nil }
        return self.authorizations.value.find(origin, path: url.path(percentEncoded: true)) {
            self.mayUse($0, at: url)
        }
    }

    /// Answers the challenges of a 401 or 407.
    /// - Parameters:
    ///   - lines: the values of `WWW-Authenticate` or `Proxy-Authenticate`.
    ///   - completion: called once on the loop, possibly at once, unless the request has moved on.
    /// - Returns: `false` if there is no challenge that could be answered; `completion` is then not called.
    func authenticate(
        _ response: HTTPURLResponse, _ lines: [String],
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) -> Bool {
        let challenges = Challenge.answerable(in: lines)
        guard !challenges.isEmpty else { return false }
        if let authorization = self.credentials.authorization {
            if self.renew(authorization, challenges, response, completion) { return true }
            self.authorizations.value.remove(authorization)
            self.noteRefusal(of: authorization.credential)
            self.credentials.authorization = nil
            self.credentials.handshake = nil
        }
        self.ask(challenges[...], response, nil, completion)
        return true
    }

    private func noteRefusal(of credential: URLCredential) {
        guard !self.credentials.isPreemptive else {
            // It may be that of another realm: no answer about this request was wrong.
            self.credentials.refusedPreemptively = credential
            self.credentials.isPreemptive = false
            return
        }
        self.credentials.unstored = nil
        if credential.user?.isEmpty == false { self.credentials.lastRefused = credential }
        self.credentials.refusals += 1
    }

    /// Sends the request again with the same credential, if that makes sense.
    private func renew(
        _ authorization: Authorization, _ challenges: [Challenge], _ response: HTTPURLResponse,
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) -> Bool {
        if let connection = authorization.connection {
            return self.continueHandshake(connection, challenges, response, completion)
        }
        guard self.credentials.renewals < RequestCredentials.renewalLimit,
            challenges.contains(where: authorization.canRetry)
        else { return false }
        self.credentials.renewals += 1
        completion(self, .retry)
        return true
    }

    // MARK: Asking for a credential

    /// - Parameter failure: why an earlier challenge could not be answered.
    private func ask(
        _ challenges: ArraySlice<Challenge>, _ response: HTTPURLResponse, _ failure: URLError?,
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) {
        guard let challenge = challenges.first, let url = self.request.url, let (task, _) = self.challengedTask
        else { return completion(self, failure.map { .failed($0) } ?? .refused) }
        let space = self.protectionSpace(of: challenge, at: url)
        if let known = self.credentials.lastRefused ?? self.configuredCredential(at: url) {
            return self.ask(challenges, in: space, proposing: known, response, failure, completion)
        }
        // A program asks for the password of a user whom the URL names, and the storage does not know.
        let user = self.isOfProxy ? nil : url.namedUser
        let found = self.awaiting { (load: Self, stored: URLCredential?) in
            let proposed = stored ?? user.map { URLCredential(user: $0) }
            load.ask(challenges, in: space, proposing: proposed, response, failure, completion)
        }
        self.core.findCredential(for: space, user: user, of: task, found)
    }

    /// Asks the delegate about the first challenge.
    private func ask(
        _ challenges: ArraySlice<Challenge>, in space: URLProtectionSpace, proposing proposed: URLCredential?,
        _ response: HTTPURLResponse, _ failure: URLError?,
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) {
        guard let challenge = challenges.first, let url = self.request.url, let (task, session) = self.challengedTask
        else { return completion(self, failure.map { .failed($0) } ?? .refused) }
        let authenticationChallenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed, previousFailureCount: self.credentials.refusals,
            failureResponse: response, error: nil, sender: ChallengeSender())
        let answered = self.awaiting { (load: Self, answer: ChallengeAnswer) in
            let rest = challenges.dropFirst()
            switch answer.disposition {
            case .useCredential:
                let isForTask = answer.credential?.persistence == URLCredential.Persistence.none
                load.use(answer.credential, for: challenge, space, url, isForTask: isForTask) {
                    load.concluded($1, before: rest, response, failure, completion)
                }
            case .performDefaultHandling:
                guard let credential = load.defaultCredential(proposed, for: challenge, at: url) else {
                    // Without a ticket Negotiate is no reason to give up the schemes behind it.
                    if challenge.scheme.authenticatesConnections {
                        return load.ask(rest, response, failure, completion)
                    }
                    return completion(load, failure.map { .failed($0) } ?? .refused)
                }
                load.use(credential, for: challenge, space, url) {
                    load.concluded($1, before: rest, response, failure, completion)
                }
            case .cancelAuthenticationChallenge:
                completion(load, .failed(LoadFailure.error(.cancelled, url: url)))
            case .rejectProtectionSpace: load.ask(rest, response, failure, completion)
            }
        }
        self.core.ask(authenticationChallenge, about: task, of: session, answered)
    }

    /// A scheme that cannot be used leaves the challenge to the schemes behind it.
    private func concluded(
        _ outcome: ChallengeOutcome, before rest: ArraySlice<Challenge>, _ response: HTTPURLResponse,
        _ failure: URLError?, _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) {
        guard case .failed(let error) = outcome else { return completion(self, outcome) }
        self.ask(rest, response, failure ?? error, completion)
    }

    private func defaultCredential(
        _ proposed: URLCredential?, for challenge: Challenge, at url: URL
    ) -> URLCredential? {
        guard self.credentials.refusals == 0 else { return nil }
        if let proposed, proposed.hasPassword {
            let refused = self.credentials.refusedPreemptively
            return refused?.user == proposed.user && refused?.password == proposed.password ? nil : proposed
        }
        guard challenge.scheme == .negotiate, self.core.mayUseTickets(at: url) else { return nil }
        return URLCredential(user: "", password: "", persistence: .none)
    }

    /// - Parameters:
    ///   - isForTask: whether other requests do not get the credential: the delegate answered with one that is not kept.
    ///   - completion: with `.failed` if the scheme of the challenge cannot be used.
    private func use(
        _ credential: URLCredential?, for challenge: Challenge, _ space: URLProtectionSpace, _ url: URL,
        isForTask: Bool = false, _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) {
        guard let credential,
            let authorization = Authorization(
                challenge, credential: credential, url: url, account: self.account(at: url), isOfProxy: self.isOfProxy)
        else { return completion(self, .refused) }
        guard let connection = authorization.connection else {
            self.accept(authorization, in: space, isForTask: isForTask)
            return completion(self, .retry)
        }
        let transfer = ExecutorIsolated(authorization, to: self.core.executor)
        self.beginHandshake(connection, at: url) { load, outcome in
            if case .retry = outcome { load.accept(transfer.value, in: space, isForTask: isForTask) }
            completion(load, outcome)
        }
    }

    /// Uses a credential for this request and, unless it is for the task alone, later ones.
    private func accept(_ authorization: Authorization, in space: URLProtectionSpace, isForTask: Bool) {
        let credential = authorization.credential
        self.credentials.unstored = credential.persistence == .none ? nil : (credential, space)
        if !isForTask { self.authorizations.value.insert(authorization) }
        self.credentials.authorization = authorization
        self.credentials.isPreemptive = false
    }

    /// The server has answered. A 5xx may be that of a proxy or gateway, which has not looked at the credential of the server.
    func serverAnswered(_ status: Int) {
        if status < 500, status != 401, status != 407 { self.credentialAccepted() }
    }

    /// The server or proxy has let the request pass: its credential is stored as its persistence asks for.
    func credentialAccepted() {
        guard let (credential, space) = self.credentials.unstored else { return }
        self.credentials.unstored = nil
        guard let storage = self.core.configuration.urlCredentialStorage else { return }
        if let (task, _) = self.challengedTask {
            storage.set(credential, for: space, task: task)
        } else {
            storage.set(credential, for: space)
        }
    }
}

/// NTLM and Negotiate, which authenticate a connection by several requests (RFC 4559 §5).
extension ChallengedRequest {
    /// Whether a token must be made before the request is sent.
    func needsToken(at url: URL) -> Bool {
        guard self.credentials.handshake == nil, self.request.value(forHTTPHeaderField: "Authorization") == nil else {
            return false
        }
        return self.knownAuthorization(at: url)?.connection?.authenticatesEachRequest ?? false
    }

    /// Whether each new connection must be authenticated.
    func authenticatesConnections(at url: URL) -> Bool {
        self.credentials.handshake == nil && self.knownAuthorization(at: url)?.connection != nil
    }

    /// Makes the first token for a request that is not sent yet.
    /// - Parameter completion: called once on the loop; without a token the request is sent without one.
    func makeToken(at url: URL, _ completion: @escaping @Sendable (Self) -> Void) {
        guard let connection = self.knownAuthorization(at: url)?.connection else { return completion(self) }
        self.beginHandshake(connection, at: url) { load, _ in completion(load) }
    }

    private func continueHandshake(
        _ connection: ConnectionAuthorization, _ challenges: [Challenge], _ response: HTTPURLResponse,
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) -> Bool {
        guard let challenge = challenges.first(where: { $0.schemeName.matchesIgnoringCase(connection.schemeName) }),
            let url = self.request.url
        else { return false }
        let state = self.handshakeConnection
        guard let handshake = self.credentials.handshake else {
            // The credential is known, but not on this connection.
            if state.isReused { connection.authenticatesEachRequest = true }
            self.beginHandshake(connection, at: url, completion)
            return true
        }
        guard let token = challenge.token68.flatMap({ Base64.decoded($0.utf8) }), handshake.canContinue else {
            return false
        }
        guard state.isKept else {
            completion(self, .failed(self.handshakeFailure("its tokens do not fit into one request", connection, url)))
            return true
        }
        guard state.isOpen else {
            guard self.credentials.abandonHandshake() else { return false }
            self.beginHandshake(connection, at: url, completion)
            return true
        }
        let stepped = self.awaiting { (load: Self, result: Result<SecurityStep, GSSFailure>) in
            load.stepped(result, handshake, url, completion)
        }
        handshake.step(token, stepped)
        return true
    }

    private func beginHandshake(
        _ connection: ConnectionAuthorization, at url: URL,
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) {
        let state = self.handshakeConnection
        guard state.isKept || connection.mechanism != .ntlm else {
            return completion(
                self, .failed(self.handshakeFailure("its tokens do not fit into one request", connection, url)))
        }
        if let certificate = state.certificate {
            connection.bindings = ChannelBinding.serverEndPoint(certificate: certificate) ?? []
        }
        let handshake = TokenHandshake(connection, host: url.serverName ?? "")
        let stepped = self.awaiting { (load: Self, result: Result<SecurityStep, GSSFailure>) in
            load.stepped(result, handshake, url, completion)
        }
        handshake.step([], stepped)
    }

    private func stepped(
        _ result: Result<SecurityStep, GSSFailure>, _ handshake: TokenHandshake, _ url: URL,
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) {
        switch result {
        case .success(let step):
            handshake.stepped(step)
            self.credentials.handshake = handshake
            completion(self, .retry)
        case .failure(let failure):
            self.credentials.handshake = nil
            completion(self, .failed(self.handshakeFailure(failure.description, handshake.authorization, url)))
        }
    }

    private func handshakeFailure(_ reason: String, _ connection: ConnectionAuthorization, _ url: URL) -> URLError {
        LoadFailure.error(
            .userAuthenticationRequired, url: url,
            text: "The server requires \(connection.schemeName) authentication, which is not possible here: \(reason).")
    }
}

extension AuthenticationScheme {
    fileprivate var authenticatesConnections: Bool { self == .ntlm || self == .negotiate }
}

extension TaskBody {
    /// - Returns: `nil` for a stream, which cannot be read twice.
    fileprivate func contentHash(_ hasher: DigestHasher) -> String? {
        var hasher = hasher
        switch self {
        case .none: break
        case .data(let data): hasher.update([UInt8](data))
        // A file is mapped into memory.
        case .file(let url):
            if let data = try? Data(contentsOf: url, options: .mappedIfSafe) { hasher.update([UInt8](data)) }
        case .filePart(let url, let part):
            let data = try? Data(contentsOf: url, options: .mappedIfSafe)
            let bytes = data?.dropFirst(Int(clamping: part.offset)).prefix(Int(clamping: part.length))
            if let bytes { hasher.update([UInt8](bytes)) }
        case .stream, .streamRest: return nil
        }
        return hasher.finalize()
    }
}
