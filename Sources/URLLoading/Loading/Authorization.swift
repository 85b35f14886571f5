import Foundation
import HTTPSemantics

/// An answer to a challenge of a server, good for all requests of its scope. On the loop.
final class Authorization {
    private enum Method {
        /// The whole value of the field.
        case basic(String)
        case digest(DigestSession)
    }

    let origin: Origin
    let scope: ProtectionScope
    let space: URLProtectionSpace
    let credential: URLCredential
    private var method: Method

    /// - Returns: `nil` where the credential is no name with a password, or where the scheme cannot say it.
    init?(_ challenge: Challenge, credential: URLCredential, space: URLProtectionSpace, url: URL, origin: Origin) {
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

    private static func paths(_ references: [String], at url: URL, _ origin: Origin) -> [String] {
        references.compactMap { URL(string: $0, relativeTo: url)?.absoluteURL }
            .filter { Origin($0) == origin }.map { $0.path(percentEncoded: true) }
    }

    /// Why a credential cannot answer the challenge of a scheme that is still to come.
    static func refusal(of challenge: Challenge, at url: URL?) -> URLError? {
        guard [.ntlm, .negotiate].contains(challenge.scheme) else { return nil }
        return LoadFailure.error(
            .userAuthenticationRequired, url: url,
            text: "The server wants \(challenge.schemeName), which is not there yet: Basic and Digest are.")
    }

    /// Whether a challenge is about this: only a nonce that was too old lets the same credential be tried again.
    func answersAgain(_ challenge: Challenge) -> Bool {
        guard case .digest(var session) = self.method, let digest = DigestChallenge(challenge) else { return false }
        defer { self.method = .digest(session) }
        return session.challenged(again: digest) == .answerAgain
    }

    /// What the next request's content must be hashed with; `nil` where it need not be.
    var contentHasher: DigestHasher? {
        if case .digest(let session) = self.method { session.contentHasher } else { nil }
    }

    /// The value of `Authorization` for one request.
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

    /// What a server told for the next request.
    func received(authenticationLines: [String]) {
        guard !authenticationLines.isEmpty, case .digest(var session) = self.method else { return }
        session.received(authenticationLines: authenticationLines)
        self.method = .digest(session)
    }
}
