import Foundation
import HTTPSemantics
import HTTPTransport

extension WebSocketOpening {
    /// The value of `Authorization` for the request that is about to be sent; `nil` for none.
    func authorizationField(_ url: URL) -> String? {
        guard let origin = HTTPSemantics.Origin(url) else { return nil }
        let path = url.path(percentEncoded: true)
        self.authorization = self.authorization ?? self.core.authorizations.value.find(origin, path: path)
        // Of no content.
        let hash = self.authorization?.contentHasher.map { $0.finalize() }
        return self.authorization?.fieldValue(method: "GET", target: url.requestTarget, contentHash: hash)
    }

    /// What an accepting server told for the next request.
    func accepted(_ lines: [HeaderField]) {
        self.authorization?.received(
            authenticationLines: lines.filter { $0.isNamed("authentication-info") }.map(\.value))
    }

    /// - Returns: whether the answer is taken care of.
    func authenticate(
        _ response: HTTPURLResponse, _ lines: [HeaderField], _ answer: @escaping @Sendable (Judgement) -> Void
    ) -> Bool {
        let wanted = lines.filter { $0.isNamed("www-authenticate") }.map(\.value)
        let challenges = Challenge.asked(wanted)
        guard !challenges.isEmpty else { return false }
        if let authorization = self.authorization {
            if challenges.contains(where: authorization.answersAgain) {
                self.next(answer)
                return true
            }
            self.core.authorizations.value.forget(authorization)
            self.lastCredential = authorization.credential
            self.refusedCredentials += 1
            self.authorization = nil
        }
        self.ask(challenges[...], response, answer)
        return true
    }

    private func ask(
        _ challenges: ArraySlice<Challenge>, _ response: HTTPURLResponse,
        _ answer: @escaping @Sendable (Judgement) -> Void
    ) {
        guard let challenge = challenges.first, let url = self.request.url else { return answer(.refused) }
        let space = URLProtectionSpace(challenge, at: url)
        let proposed = self.proposedCredential(space, url)
        let question = URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: proposed, previousFailureCount: self.refusedCredentials,
            failureResponse: response, error: nil, sender: ChallengeSender())
        self.core.ask(question, about: self.task, of: self.session) { told in
            self.core.pool.execute {
                switch told.disposition {
                case .useCredential: self.use(told.credential, for: challenge, space, answer)
                case .performDefaultHandling:
                    self.use(self.refusedCredentials == 0 ? proposed : nil, for: challenge, space, answer)
                case .cancelAuthenticationChallenge: answer(.failed(LoadFailure.error(.cancelled, url: url)))
                case .rejectProtectionSpace: self.ask(challenges.dropFirst(), response, answer)
                }
            }
        }
    }

    /// From the URL, else from the store; after a refusal, what was refused.
    private func proposedCredential(_ space: URLProtectionSpace, _ url: URL) -> URLCredential? {
        if let last = self.lastCredential { return last }
        if let user = url.user(percentEncoded: false), let password = url.password(percentEncoded: false) {
            return URLCredential(user: user, password: password, persistence: .forSession)
        }
        return self.core.configuration.urlCredentialStorage?.defaultCredential(for: space)
    }

    private func use(
        _ credential: URLCredential?, for challenge: Challenge, _ space: URLProtectionSpace,
        _ answer: @escaping @Sendable (Judgement) -> Void
    ) {
        if credential != nil, let refusal = Authorization.refusal(of: challenge, at: self.request.url) {
            return answer(.failed(refusal))
        }
        guard let credential, let url = self.request.url, let origin = HTTPSemantics.Origin(url),
            let authorization = Authorization(
                challenge, credential: credential, space: space, url: url, origin: origin)
        else { return answer(.refused) }
        if credential.persistence != .none {
            self.core.configuration.urlCredentialStorage?.set(credential, for: space)
        }
        self.core.authorizations.value.keep(authorization)
        self.authorization = authorization
        self.next(answer)
    }
}
