import Foundation
import HTTPSemantics
import HTTPTransport
import TLSEngine

extension HTTPLoad {
    /// The value of the `Authorization` field for the request about to be sent; `nil` for none.
    func authorizationField(method: String, target: String, url: URL) -> String? {
        guard self.authorization != nil || !self.core.authorizations.value.isEmpty,
            let origin = HTTPSemantics.Origin(url)
        else { return nil }
        let path = url.path(percentEncoded: true)
        let authorization = self.authorization ?? self.core.authorizations.value.find(origin, path: path)
        self.authorization = authorization
        return authorization?.fieldValue(
            method: method, target: target, contentHash: self.contentHash(authorization?.contentHasher))
    }

    private func contentHash(_ hasher: DigestHasher?) -> String? {
        guard var hasher else { return nil }
        switch self.body {
        case .none: break
        case .data(let data): hasher.update([UInt8](data))
        // A stream cannot be read twice. A file is mapped into memory.
        case .file(let url):
            if let data = try? Data(contentsOf: url, options: .mappedIfSafe) { hasher.update([UInt8](data)) }
        case .stream: return nil
        }
        return hasher.finalize()
    }

    // MARK: 401

    /// - Returns: whether the challenge is being answered; otherwise the 401 is the final response.
    func authenticate(_ response: HTTPURLResponse, _ head: HTTPTransport.ResponseHead) -> Bool {
        let lines = head.fields.filter { $0.isNamed("www-authenticate") }.map(\.value)
        let challenges = Challenge.answerable(in: lines)
        guard !challenges.isEmpty else { return false }
        if let authorization = self.authorization {
            if challenges.contains(where: authorization.canRetry) {
                self.resend()
                return true
            }
            self.core.authorizations.value.remove(authorization)
            self.lastCredential = authorization.credential
            self.refusedCredentials += 1
            self.authorization = nil
        }
        self.ask(challenges[...], response)
        return true
    }

    private func resend() {
        self.abandonAttempt()
        self.send()
    }

    private func ask(_ challenges: ArraySlice<Challenge>, _ response: HTTPURLResponse) {
        guard let challenge = challenges.first, let url = self.request.url else {
            return self.deliverResponse(response)
        }
        let space = URLProtectionSpace(challenge, at: url)
        let proposed = self.proposedCredential(space, url)
        let authenticationChallenge = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed, previousFailureCount: self.refusedCredentials,
            failureResponse: response, error: nil, sender: ChallengeSender())
        self.loader.askChallenge(
            authenticationChallenge,
            self.awaiting { load, answer in
                switch answer.disposition {
                case .useCredential: load.answer(challenge, with: answer.credential, space, response)
                case .performDefaultHandling:
                    load.answer(challenge, with: load.refusedCredentials == 0 ? proposed : nil, space, response)
                case .cancelAuthenticationChallenge:
                    load.fail(LoadFailure.error(.cancelled, url: load.request.url))
                case .rejectProtectionSpace: load.ask(challenges.dropFirst(), response)
                }
            })
    }

    /// From the URL, otherwise from the credential storage; after a rejection, the rejected credential.
    private func proposedCredential(_ space: URLProtectionSpace, _ url: URL) -> URLCredential? {
        if let last = self.lastCredential { return last }
        if let user = url.user(percentEncoded: false), let password = url.password(percentEncoded: false) {
            return URLCredential(user: user, password: password, persistence: .forSession)
        }
        return self.core.configuration.urlCredentialStorage?.defaultCredential(for: space)
    }

    private func answer(
        _ challenge: Challenge, with credential: URLCredential?, _ space: URLProtectionSpace,
        _ response: HTTPURLResponse
    ) {
        if credential != nil, let refusal = Authorization.refusal(of: challenge, at: self.request.url) {
            return self.fail(refusal)
        }
        guard let credential, let url = self.request.url, let origin = HTTPSemantics.Origin(url),
            let authorization = Authorization(
                challenge, credential: credential, space: space, url: url, origin: origin)
        else { return self.deliverResponse(response) }
        if credential.persistence != .none {
            self.core.configuration.urlCredentialStorage?.set(credential, for: space)
        }
        self.core.authorizations.value.insert(authorization)
        self.authorization = authorization
        self.resend()
    }

    // MARK: TLS

    func verify(_ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void) {
        guard let url = self.request.url else { return answer(.reject) }
        self.core.askTrust(request, at: url, for: self.loader.task, of: self.loader.session) { decision, refusal in
            self.core.pool.execute {
                self.tlsRefusal = refusal
                answer(decision)
            }
        }
    }

    func chooseIdentity(_ issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) {
        guard let url = self.request.url else { return answer(nil) }
        self.core.askIdentity(issuers, at: url, for: self.loader.task, of: self.loader.session) { identity, refusal in
            self.core.pool.execute {
                if let refusal { return self.fail(refusal) }
                answer(identity)
            }
        }
    }
}

extension URLProtectionSpace {
    /// The protection space of a challenge in a response.
    convenience init(_ challenge: Challenge, at url: URL) {
        let scheme = url.scheme?.withLoweredLetters ?? "http"
        let isSecure = ["https", "wss"].contains(scheme)
        let method =
            switch challenge.scheme {
            case .basic: NSURLAuthenticationMethodHTTPBasic
            case .digest: NSURLAuthenticationMethodHTTPDigest
            case .ntlm: NSURLAuthenticationMethodNTLM
            case .negotiate: NSURLAuthenticationMethodNegotiate
            case .other: NSURLAuthenticationMethodDefault
            }
        self.init(
            host: url.serverName ?? "", port: url.port ?? (isSecure ? 443 : 80),
            protocol: isSecure ? NSURLProtectionSpaceHTTPS : NSURLProtectionSpaceHTTP, realm: challenge.realm,
            authenticationMethod: method)
    }
}

/// A credential for an HTTP challenge, sent with all requests in its scope (RFC 9110 §11). Confined to the event loop.
final class Authorization {
    private enum Method {
        /// The value of the `Authorization` field.
        case basic(String)
        case digest(DigestSession)
    }

    let origin: HTTPSemantics.Origin
    let scope: ProtectionScope
    let space: URLProtectionSpace
    let credential: URLCredential
    private var method: Method

    /// - Returns: `nil` if the credential has no user name and password, or the scheme cannot encode them.
    init?(
        _ challenge: Challenge, credential: URLCredential, space: URLProtectionSpace, url: URL,
        origin: HTTPSemantics.Origin
    ) {
        guard let user = credential.user, let password = credential.password else { return nil }
        let path = url.path(percentEncoded: true)
        switch challenge.scheme {
        case .basic:
            guard let value = BasicCredentials.fieldValue(user: user, password: password) else { return nil }
            self.method = .basic(value)
            self.scope = ProtectionScope(basicChallengedAt: path.isEmpty ? "/" : path)
        case .digest:
            guard let digest = DigestChallenge(challenge) else { return nil }
            self.method = .digest(DigestSession(digest, user: user, password: password))
            self.scope = ProtectionScope(digestDomain: Self.paths(digest.domain, at: url, origin))
        case .ntlm, .negotiate, .other: return nil
        }
        self.origin = origin
        self.space = space
        self.credential = credential
    }

    private static func paths(_ references: [String], at url: URL, _ origin: HTTPSemantics.Origin) -> [String] {
        references.compactMap { URL(string: $0, relativeTo: url)?.absoluteURL }
            .filter { Origin($0) == origin }.map { $0.path(percentEncoded: true) }
    }

    /// The error of a challenge whose scheme is not supported.
    static func refusal(of challenge: Challenge, at url: URL?) -> URLError? {
        guard [.ntlm, .negotiate].contains(challenge.scheme) else { return nil }
        return LoadFailure.error(
            .userAuthenticationRequired, url: url,
            text: "The server requires \(challenge.schemeName) authentication; only Basic and Digest are supported.")
    }

    /// Whether the same credential can be tried again, which is the case only after a stale nonce.
    func canRetry(after challenge: Challenge) -> Bool {
        guard case .digest(var session) = self.method, let digest = DigestChallenge(challenge) else { return false }
        defer { self.method = .digest(session) }
        return session.rechallenged(by: digest) == .retry
    }

    /// Hashes the content of the next request; `nil` if that is not required.
    var contentHasher: DigestHasher? {
        if case .digest(let session) = self.method { session.contentHasher } else { nil }
    }

    /// The value of the `Authorization` field for one request.
    func fieldValue(method: String, target: String, contentHash: String?) -> String {
        switch self.method {
        case .basic(let value): return value
        case .digest(var session):
            let nonce = (0..<2).map { _ in String(UInt64.random(in: .min ... .max), radix: 16) }.joined()
            let request = DigestRequest(method: method, target: target, contentHash: contentHash)
            let value = session.fieldValue(for: request, clientNonce: nonce)
            self.method = .digest(session)
            return value
        }
    }

    /// Processes the `Authentication-Info` fields of a response.
    func received(authenticationLines: [String]) {
        guard !authenticationLines.isEmpty, case .digest(var session) = self.method else { return }
        session.received(authenticationLines: authenticationLines)
        self.method = .digest(session)
    }
}

/// Authorizations to send preemptively: the last `limit` used in this session.
struct AuthorizationCache {
    private static let limit = 64

    private var entries: [Authorization] = []

    var isEmpty: Bool { self.entries.isEmpty }

    func find(_ origin: HTTPSemantics.Origin, path: String) -> Authorization? {
        self.entries.last { $0.origin == origin && $0.scope.covers(path) }
    }

    mutating func insert(_ authorization: Authorization) {
        self.entries.removeAll {
            $0 === authorization || $0.origin == authorization.origin && $0.scope == authorization.scope
        }
        self.entries.append(authorization)
        if self.entries.count > Self.limit { self.entries.removeFirst() }
    }

    mutating func remove(_ authorization: Authorization) {
        self.entries.removeAll { $0 === authorization }
    }
}
