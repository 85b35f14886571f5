import Foundation
import HTTPSemantics
import WireText

/// A request that is authenticated at its server or its proxy (RFC 9110 §11): of an HTTP load, or of an opening handshake.
/// Confined to the session's executor.
protocol ChallengedRequest: AnyObject, Sendable {
    var core: SessionCore { get }
    /// Whose delegates are asked; `nil` once the task is released.
    var challengedTask: (task: URLSessionTask, session: URLSession)? { get }
    /// The request as it is sent now; for a proxy, to the proxy itself.
    var request: URLRequest { get }
    var credentials: RequestCredentials { get set }
    /// Authorizations of earlier requests.
    var authorizations: ExecutorIsolated<AuthorizationCache> { get }

    func protectionSpace(of challenge: Challenge, at url: URL) -> URLProtectionSpace
    func proposedCredential(for space: URLProtectionSpace, at url: URL) -> URLCredential?

    /// Wraps `work` so that it runs on the loop, unless the request has moved on to another step.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (Self, Answer) -> Void) -> @Sendable (Answer) -> Void
}

/// What one request has sent and tried. A redirect starts with new ones.
struct RequestCredentials {
    /// How often a request is sent again because the server calls its nonce stale.
    static let renewalLimit = 3

    /// Sent with the request, if not `nil`.
    fileprivate(set) var authorization: Authorization?
    fileprivate var refusals = 0
    fileprivate var renewals = 0
    fileprivate var lastRefused: URLCredential?
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

    func protectionSpace(of challenge: Challenge, at url: URL) -> URLProtectionSpace {
        URLProtectionSpace(challenge, at: url)
    }

    func proposedCredential(for space: URLProtectionSpace, at url: URL) -> URLCredential? {
        self.core.proposedCredential(for: space, at: url)
    }

    /// Sets the `Authorization` of the request about to be sent, unless the program has set its own.
    func authorize(_ builder: inout RequestBuilder, _ url: URL, method: String, body: TaskBody) {
        guard self.request.value(forHTTPHeaderField: "Authorization") == nil || self.credentials.authorization != nil
        else { return }
        builder.authorization = self.fieldValue(at: url, method: method, target: url.requestTarget) {
            body.contentHash($0)
        }
    }

    /// The value of the authorization field for the next request; `nil` if none is known.
    func fieldValue(
        at url: URL, method: String, target: String, contentHash: (DigestHasher) -> String?
    ) -> String? {
        guard self.credentials.authorization != nil || !self.authorizations.value.isEmpty,
            let origin = HTTPSemantics.Origin(url)
        else { return nil }
        let path = url.path(percentEncoded: true)
        let authorization = self.credentials.authorization ?? self.authorizations.value.find(origin, path: path)
        self.credentials.authorization = authorization
        return authorization?.fieldValue(
            method: method, target: target, contentHash: authorization?.contentHasher.flatMap(contentHash))
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
            if self.credentials.renewals < RequestCredentials.renewalLimit,
                challenges.contains(where: authorization.canRetry)
            {
                self.credentials.renewals += 1
                completion(self, .retry)
                return true
            }
            self.authorizations.value.remove(authorization)
            self.credentials.lastRefused = authorization.credential
            self.credentials.refusals += 1
            self.credentials.authorization = nil
        }
        self.ask(challenges[...], response, completion)
        return true
    }

    private func ask(
        _ challenges: ArraySlice<Challenge>, _ response: HTTPURLResponse,
        _ completion: @escaping @Sendable (Self, ChallengeOutcome) -> Void
    ) {
        guard let challenge = challenges.first, let url = self.request.url, let (task, session) = self.challengedTask
        else { return completion(self, .refused) }
        let space = self.protectionSpace(of: challenge, at: url)
        let refusals = self.credentials.refusals
        let proposed = self.credentials.lastRefused ?? self.proposedCredential(for: space, at: url)
        let authenticationChallenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed, previousFailureCount: refusals,
            failureResponse: response, error: nil, sender: ChallengeSender())
        let answered = self.awaiting { (load: Self, answer: ChallengeAnswer) in
            switch answer.disposition {
            case .useCredential: completion(load, load.use(answer.credential, for: challenge, space, url))
            case .performDefaultHandling:
                completion(load, load.use(refusals == 0 ? proposed : nil, for: challenge, space, url))
            case .cancelAuthenticationChallenge:
                completion(load, .failed(LoadFailure.error(.cancelled, url: url)))
            case .rejectProtectionSpace: load.ask(challenges.dropFirst(), response, completion)
            }
        }
        self.core.ask(authenticationChallenge, about: task, of: session, answered)
    }

    private func use(
        _ credential: URLCredential?, for challenge: Challenge, _ space: URLProtectionSpace, _ url: URL
    ) -> ChallengeOutcome {
        do throws(URLError) {
            let authorization = try self.core.authorize(
                challenge, with: credential, in: space, at: url, self.authorizations)
            guard let authorization else { return .refused }
            self.credentials.authorization = authorization
            return .retry
        } catch {
            return .failed(error)
        }
    }
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
        case .stream: return nil
        }
        return hasher.finalize()
    }
}
