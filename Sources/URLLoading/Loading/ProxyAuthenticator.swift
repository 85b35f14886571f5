import Foundation
import HTTPSemantics
import SessionTasks
import TLSEngine
import WireText

/// Answers the 407 of an HTTP proxy for one task (RFC 9110 §11.7): with the configured credential or the one of the
/// credential storage, or as the delegate decides. Confined to the session's executor.
final class ProxyAuthenticator: ChallengedRequest, @unchecked Sendable {  // Confined to the session's executor.
    let core: SessionCore
    // Both references are weak because the task owns, through its connection, this object.
    private weak var session: URLSession?
    private weak var task: URLSessionTask?
    let proxy: ProxyAddress
    /// Names the proxy, which scopes its authorizations; never sent.
    let request: URLRequest
    var credentials = RequestCredentials()
    /// Of the request that is sent, for errors.
    var url: URL
    var handshakeConnection = HandshakeConnection()

    init(_ proxy: ProxyAddress, for task: URLSessionTask, of session: URLSession, at url: URL) {
        self.core = session.core
        self.session = session
        self.task = task
        self.proxy = proxy
        let host = proxy.host.contains(":") ? "[\(proxy.host)]" : proxy.host
        self.request = URLRequest(url: URL(string: "http://\(host):\(proxy.port)/") ?? url)
        self.url = url
    }

    var challengedTask: (task: URLSessionTask, session: URLSession)? {
        guard let task, let session else { return nil }
        return (task, session)
    }

    var authorizations: ExecutorIsolated<AuthorizationCache> { self.core.proxyAuthorizations }

    var isOfProxy: Bool { true }

    func protectionSpace(of challenge: Challenge, at url: URL) -> URLProtectionSpace {
        URLProtectionSpace(challenge, of: self.proxy)
    }

    func account(at url: URL) -> ConfiguredAccount? {
        self.proxy.user.map { ConfiguredAccount(user: $0, password: self.proxy.password ?? "") }
    }

    func mayUse(_ authorization: Authorization, at url: URL) -> Bool { authorization.account == self.account(at: url) }

    func configuredCredential(at url: URL) -> URLCredential? {
        self.account(at: url).map { URLCredential(user: $0.user, password: $0.password, persistence: .none) }
    }

    func awaiting<Answer: Sendable>(
        _ work: @escaping @Sendable (ProxyAuthenticator, Answer) -> Void
    ) -> @Sendable (Answer) -> Void {
        { answer in self.core.executor.execute { work(self, answer) } }
    }

    /// The value of `Proxy-Authorization` for the next request; `nil` before the proxy has asked for one.
    /// - Parameter target: of the request: an absolute URL, or host and port for `CONNECT`.
    func fieldValue(method: String, target: String) -> String? {
        guard let url = self.request.url else { return nil }
        return self.fieldValue(at: url, method: method, target: target) { _ in nil }
    }

    /// Answers a 407.
    /// - Parameter completion: called once on the executor, possibly at once.
    /// - Returns: `false` if there is no challenge that could be answered; `completion` is then not called.
    func answer(
        _ head: ResponseHead, _ response: HTTPURLResponse,
        _ completion: @escaping @Sendable (ChallengeOutcome) -> Void
    ) -> Bool {
        self.authenticate(response, head.fields.values("Proxy-Authenticate")) { proxy, outcome in
            guard case .failed(let error) = outcome else { return completion(outcome) }
            completion(.failed(proxy.failure(error)))
        }
    }

    /// The task's error instead of one that names the proxy's URL.
    private func failure(_ error: URLError) -> URLError {
        guard error.code == .userAuthenticationRequired else { return LoadFailure.error(error.code, url: self.url) }
        return LoadFailure.error(
            error.code, url: self.url, text: "At the proxy \(self.proxy.host): \(error.localizedDescription)")
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
        { challenge, completion in
            self.core.executor.execute {
                guard let challenge else { return self.begin(target, completion) }
                guard let response = self.response(challenge.head) else { return completion(nil) }
                self.handshakeConnection = HandshakeConnection(
                    isKept: true, isOpen: challenge.keepsConnection, certificate: challenge.tls?.peerChain.first)
                let isAsked = self.answer(challenge.head, response) { outcome in
                    switch outcome {
                    case .retry: completion(self.fields(target))
                    case .refused: completion(nil)
                    case .failed(let error):
                        fail(error)
                        completion(nil)
                    }
                }
                if !isAsked { completion(nil) }
            }
        }
    }

    /// Provides the fields of a connection's first request.
    private func begin(_ target: String, _ completion: @escaping @Sendable ([FieldLine]?) -> Void) {
        self.handshakeConnection = HandshakeConnection(isKept: true)
        // An earlier opening of the same exchange may have authenticated its own connection.
        self.credentials.dropHandshake()
        guard let url = self.request.url, self.authenticatesConnections(at: url) else {
            return completion(self.fields(target))
        }
        self.makeToken(at: url) { completion($0.fields(target)) }
    }

    private func fields(_ target: String) -> [FieldLine] {
        self.fieldValue(method: "CONNECT", target: target).map { [FieldLine("Proxy-Authorization", $0)] } ?? []
    }

    private func response(_ head: ResponseHead) -> HTTPURLResponse? {
        HTTPURLResponse(
            url: self.request.url ?? self.url, statusCode: head.status, httpVersion: "HTTP/1.\(head.version.minor)",
            lines: head.fields.all.map { (name: $0.name, value: $0.value) }, contentIsEncoded: false)
    }
}
