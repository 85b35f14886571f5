import Foundation
import HTTPTransport
import TLSEngine

extension Transfer {
    /// What becomes of the load once its response is known; `allow` where nobody is asked.
    func ask(_ response: URLResponse, _ answer: @escaping @Sendable (Transfer, URLSession.ResponseDisposition) -> Void)
    {
        guard let task = self.task as? URLSessionDataTask else { return answer(self, .allow) }
        let session = self.session
        let questions = self.contentFaces.map { face in
            DelegateQuestion<URLSession.ResponseDisposition>(
                face: face, method: .response, asyncMethod: .responseAsync,
                call: { face, once in
                    face.data?.urlSession(session, dataTask: task, didReceive: response) { once($0) }
                },
                callAsync: { await $0.data?.urlSession(session, dataTask: task, didReceive: response) ?? .allow })
        }
        self.core.line.ask(questions, self.awaiting { answer($0, $1 ?? .allow) })
    }

    /// Whether a redirect is followed, and by which request; it is where nobody is asked.
    func askRedirect(
        _ response: HTTPURLResponse, to request: URLRequest, _ answer: @escaping @Sendable (URLRequest?) -> Void
    ) {
        self.core.askRedirect(response, to: request, about: self.task, of: self.session, answer)
    }

    /// A body that can be read from its beginning; `nil` where nobody has one.
    func askBodyStream(_ answer: @escaping @Sendable (Carried<InputStream?>) -> Void) {
        let (task, session) = (self.task, self.session)
        let questions = self.faces.map { face in
            DelegateQuestion<Carried<InputStream?>>(
                face: face, method: .newBodyStream, asyncMethod: .newBodyStreamAsync,
                call: { face, once in
                    face.task?.urlSession(session, task: task) { stream in once(Carried(stream)) }
                },
                callAsync: { face in
                    Carried(await face.task?.urlSession(session, needNewBodyStreamForTask: task))
                })
        }
        self.core.line.ask(questions) { answer($0 ?? Carried(nil)) }
    }

    func askChallenge(_ challenge: URLAuthenticationChallenge, _ answer: @escaping @Sendable (ChallengeAnswer) -> Void)
    {
        self.core.ask(challenge, about: self.task, of: self.session, answer)
    }

    func askTrust(
        _ request: VerificationRequest, at url: URL,
        _ answer: @escaping @Sendable (VerificationDecision, URLError?) -> Void
    ) {
        self.core.askTrust(request, at: url, for: self.task, of: self.session, answer)
    }

    func askIdentity(
        _ issuers: [[UInt8]], at url: URL,
        _ answer: @escaping @Sendable (TLSIdentity?, URLError?) -> Void
    ) {
        self.core.askIdentity(issuers, at: url, for: self.task, of: self.session, answer)
    }

    /// Whether a response may be kept, and how; only who hears of its content is asked.
    func askToKeep(_ proposal: CachedURLResponse, _ answer: @escaping @Sendable (CachedURLResponse?) -> Void) {
        guard self.result.isDelegate, let task = self.task as? URLSessionDataTask else { return answer(proposal) }
        let session = self.session
        let questions = self.faces.map { face in
            DelegateQuestion<CachedURLResponse?>(
                face: face, method: .cacheProposal, asyncMethod: .cacheProposalAsync,
                call: { face, once in
                    face.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) { once($0) }
                },
                callAsync: { await $0.data?.urlSession(session, dataTask: task, willCacheResponse: proposal) })
        }
        self.core.line.ask(questions) { answer($0 ?? proposal) }
    }
}
