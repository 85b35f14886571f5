import Foundation
import HTTPSemantics
import SessionTasks
import WireText

/// Answers the 407 of an HTTP proxy for one task (RFC 9110 §11.7): with the configured credential or the one of the
/// credential storage, or as the delegate decides. Confined to the session's executor.
final class ProxyAuthenticator: @unchecked Sendable {  // Its vars are used on the executor only.
    private let core: SessionCore
    // Both references are weak because the task owns, through its connection, this object.
    private weak var session: URLSession?
    private weak var task: URLSessionTask?
    let proxy: ProxyAddress
    /// Of the request, for errors.
    var url: URL
    private var authorization: Authorization?
    private var refusals = 0
    /// How often a nonce was stale.
    private var renewals = 0
    private var lastRefused: URLCredential?

    init(_ proxy: ProxyAddress, for task: URLSessionTask, of session: URLSession, at url: URL) {
        self.core = session.core
        self.session = session
        self.task = task
        self.proxy = proxy
        self.url = url
    }

    /// The proxy as a URL, which scopes its authorizations.
    private var proxyURL: URL {
        let host = self.proxy.host.contains(":") ? "[\(self.proxy.host)]" : self.proxy.host
        return URL(string: "http://\(host):\(self.proxy.port)/") ?? self.url
    }

    /// The value of `Proxy-Authorization` for the next request; `nil` before the proxy has asked for one.
    /// - Parameter target: of the request: an absolute URL, or host and port for `CONNECT`.
    func fieldValue(method: String, target: String) -> String? {
        if self.authorization == nil, let origin = HTTPSemantics.Origin(self.proxyURL) {
            self.authorization = self.core.proxyAuthorizations.value.find(origin, path: "/")
        }
        return self.authorization?.fieldValue(method: method, target: target, contentHash: nil)
    }

    /// Answers a 407.
    /// - Parameter completion: called once, on the executor.
    func answer(
        _ head: ResponseHead, _ response: HTTPURLResponse,
        _ completion: @escaping @Sendable (ChallengeOutcome) -> Void
    ) {
        let challenges = Challenge.answerable(in: head.fields.values("Proxy-Authenticate"))
        if let authorization {
            if self.renewals < RequestCredentials.renewalLimit, challenges.contains(where: authorization.canRetry) {
                self.renewals += 1
                return completion(.retry)
            }
            self.core.proxyAuthorizations.value.remove(authorization)
            self.lastRefused = authorization.credential
            self.refusals += 1
            self.authorization = nil
        }
        self.ask(challenges[...], response, completion)
    }

    private func ask(
        _ challenges: ArraySlice<Challenge>, _ response: HTTPURLResponse,
        _ completion: @escaping @Sendable (ChallengeOutcome) -> Void
    ) {
        guard let challenge = challenges.first, let task, let session else { return completion(.refused) }
        let space = URLProtectionSpace(challenge, of: self.proxy)
        let proposed = self.lastRefused ?? self.configured ?? self.stored(for: space)
        let refusals = self.refusals
        let question = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed, previousFailureCount: refusals,
            failureResponse: response, error: nil, sender: ChallengeSender())
        self.core.ask(question, about: task, of: session) { answer in
            self.core.executor.execute {
                switch answer.disposition {
                case .useCredential: completion(self.use(answer.credential, for: challenge, space))
                case .performDefaultHandling:
                    completion(self.use(refusals == 0 ? proposed : nil, for: challenge, space))
                case .cancelAuthenticationChallenge:
                    completion(.failed(LoadFailure.error(.cancelled, url: self.url)))
                case .rejectProtectionSpace: self.ask(challenges.dropFirst(), response, completion)
                }
            }
        }
    }

    private var configured: URLCredential? {
        self.proxy.user.map { URLCredential(user: $0, password: self.proxy.password ?? "", persistence: .none) }
    }

    private func stored(for space: URLProtectionSpace) -> URLCredential? {
        self.core.configuration.urlCredentialStorage?.defaultCredential(for: space)
    }

    private func use(
        _ credential: URLCredential?, for challenge: Challenge, _ space: URLProtectionSpace
    ) -> ChallengeOutcome {
        do throws(URLError) {
            self.authorization = try self.core.authorizeProxy(challenge, with: credential, in: space, at: self.proxyURL)
            return self.authorization == nil ? .refused : .retry
        } catch {
            let text = "The proxy requires \(challenge.schemeName) authentication; only Basic and Digest are supported."
            return .failed(LoadFailure.error(error.code, url: self.url, text: text))
        }
    }
}

extension ProxyAuthenticator {
    /// Provides the fields of `CONNECT` requests.
    /// - Parameters:
    ///   - target: host and port of the server.
    ///   - fail: called where the task is to end with another error than the proxy's refusal.
    func authorizeTunnel(
        to target: String, fail: @escaping @Sendable (URLError) -> Void
    ) -> ProxyServer.Authorize {
        { refusal, completion in
            self.core.executor.execute {
                guard let refusal, let response = self.response(refusal) else {
                    return completion(self.fields(target))
                }
                self.answer(refusal, response) { outcome in
                    switch outcome {
                    case .retry: completion(self.fields(target))
                    case .refused: completion(nil)
                    case .failed(let error):
                        fail(error)
                        completion(nil)
                    }
                }
            }
        }
    }

    private func fields(_ target: String) -> [FieldLine] {
        self.fieldValue(method: "CONNECT", target: target).map { [FieldLine("Proxy-Authorization", $0)] } ?? []
    }

    private func response(_ head: ResponseHead) -> HTTPURLResponse? {
        HTTPURLResponse(
            url: self.proxyURL, statusCode: head.status, httpVersion: "HTTP/1.\(head.version.minor)",
            lines: head.fields.all.map { (name: $0.name, value: $0.value) }, contentIsEncoded: false)
    }
}
