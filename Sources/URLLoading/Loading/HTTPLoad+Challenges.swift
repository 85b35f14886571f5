import Foundation
import HTTPTransport
import SessionTasks
import TLSEngine
import WireText

extension HTTPLoad: ChallengedRequest {
    var challengedTask: (task: URLSessionTask, session: URLSession)? { (self.loader.task, self.loader.session) }

    /// - Returns: whether the challenge is being answered; otherwise the 401 is the final response.
    func authenticate(_ response: HTTPURLResponse, _ head: ResponseHead) -> Bool {
        self.authenticate(response, head.fields.values("WWW-Authenticate")) { $0.answered($1, response) }
    }

    private func answered(_ outcome: ChallengeOutcome, _ response: HTTPURLResponse) {
        switch outcome {
        case .retry:
            self.abandonAttempt()
            self.send()
        case .refused: self.deliverResponse(response)
        case .failed(let error): self.fail(error)
        }
    }

    /// - Returns: whether the challenge of the proxy that forwarded the request is being answered.
    func authenticateProxy(_ response: HTTPURLResponse, _ head: ResponseHead) -> Bool {
        guard let authenticator = self.proxyAuthenticator,
            self.attempt?.exchange?.request.proxy?.method == .forwarding
        else { return false }
        let answered = self.awaiting { (load: HTTPLoad, outcome: ChallengeOutcome) in load.answered(outcome, response) }
        return authenticator.answer(head, response, answered)
    }

    // MARK: TLS

    func verificationRequested(
        _ request: VerificationRequest, answer: @escaping @Sendable (VerificationDecision) -> Void
    ) {
        guard let url = self.request.url else { return answer(.reject) }
        self.core.askTrust(request, at: url, for: self.loader.task, of: self.loader.session) { decision, refusal in
            self.core.executor.execute {
                self.tlsRefusal = refusal
                answer(decision)
            }
        }
    }

    func identityRequested(issuers: [[UInt8]], answer: @escaping @Sendable (TLSIdentity?) -> Void) {
        guard let url = self.request.url else { return answer(nil) }
        self.core.askIdentity(issuers, at: url, for: self.loader.task, of: self.loader.session) { identity, refusal in
            self.core.executor.execute {
                if let refusal { return self.fail(refusal) }
                answer(identity)
            }
        }
    }
}
