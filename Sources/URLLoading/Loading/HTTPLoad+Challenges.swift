import Foundation
import HTTPSemantics
import HTTPTransport
import TLSEngine
import WireText

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
    func authenticate(_ response: HTTPURLResponse, _ head: ResponseHead) -> Bool {
        let lines = head.fields.values("WWW-Authenticate")
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
        let proposed = self.lastCredential ?? self.core.proposedCredential(for: space, at: url)
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

    private func answer(
        _ challenge: Challenge, with credential: URLCredential?, _ space: URLProtectionSpace,
        _ response: HTTPURLResponse
    ) {
        do throws(URLError) {
            guard let url = self.request.url,
                let authorization = try self.core.authorize(challenge, with: credential, in: space, at: url)
            else { return self.deliverResponse(response) }
            self.authorization = authorization
            self.resend()
        } catch {
            self.fail(error)
        }
    }

    // MARK: TLS

    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        guard let url = self.request.url else { return answer(.reject) }
        self.core.askTrust(request, at: url, for: self.loader.task, of: self.loader.session) { decision, refusal in
            self.core.pool.execute {
                self.tlsRefusal = refusal
                answer(decision)
            }
        }
    }

    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) {
        guard let url = self.request.url else { return answer(nil) }
        self.core.askIdentity(issuers, at: url, for: self.loader.task, of: self.loader.session) { identity, refusal in
            self.core.pool.execute {
                if let refusal { return self.fail(refusal) }
                answer(identity)
            }
        }
    }
}
