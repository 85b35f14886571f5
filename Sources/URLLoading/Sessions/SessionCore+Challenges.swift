import Foundation
import TLSEngine

/// Who is asked about a challenge: what concerns the session goes to its own method first and to the task's after it;
/// what concerns a request to the task's alone.
extension SessionCore {
    private static let sessionWide: Set<String> = [
        NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate,
        NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
    ]

    /// - Parameter answer: called once, on any thread; at once where nobody can be asked.
    func ask(
        _ challenge: URLAuthenticationChallenge, about task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (ChallengeAnswer) -> Void
    ) {
        let faces = self.faces(for: task)
        var questions: [DelegateQuestion<ChallengeAnswer>] = []
        if Self.sessionWide.contains(challenge.protectionSpace.authenticationMethod) {
            questions = faces.map { Self.sessionQuestion($0, challenge, session) }
        }
        questions += faces.map { Self.taskQuestion($0, challenge, task, session) }
        let once = OnceAnswer(answer)
        (challenge.sender as? ChallengeSender)?.answers(to: once)
        self.line.ask(questions) { once($0 ?? .none) }
    }

    private static func sessionQuestion(
        _ face: DelegateFace, _ challenge: URLAuthenticationChallenge, _ session: URLSession
    ) -> DelegateQuestion<ChallengeAnswer> {
        DelegateQuestion(
            face: face, method: .sessionChallenge, asyncMethod: .sessionChallengeAsync,
            call: { face, once in
                face.delegate.urlSession(session, didReceive: challenge) { disposition, credential in
                    once(ChallengeAnswer(disposition: disposition, credential: credential))
                }
            },
            callAsync: { face in
                let (disposition, credential) = await face.delegate.urlSession(session, didReceive: challenge)
                return ChallengeAnswer(disposition: disposition, credential: credential)
            })
    }

    private static func taskQuestion(
        _ face: DelegateFace, _ challenge: URLAuthenticationChallenge, _ task: URLSessionTask, _ session: URLSession
    ) -> DelegateQuestion<ChallengeAnswer> {
        DelegateQuestion(
            face: face, method: .taskChallenge, asyncMethod: .taskChallengeAsync,
            call: { face, once in
                face.task?.urlSession(session, task: task, didReceive: challenge) { disposition, credential in
                    once(ChallengeAnswer(disposition: disposition, credential: credential))
                }
            },
            callAsync: { face in
                guard let delegate = face.task else { return .none }
                let (disposition, credential) = await delegate.urlSession(session, task: task, didReceive: challenge)
                return ChallengeAnswer(disposition: disposition, credential: credential)
            })
    }

    // MARK: TLS

    /// - Parameter answer: with a rejection goes the error that the load ends with.
    func askTrust(
        _ request: VerificationRequest, at url: URL, for task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (VerificationDecision, URLError?) -> Void
    ) {
        let (host, port) = Self.place(url)
        let trust = ServerTrust(request)
        let space = URLProtectionSpace(host: host, port: port, protocol: NSURLProtectionSpaceHTTPS, trust: trust)
        let refusal = Self.refusal(trust, request, url)
        self.ask(Self.challenge(space), about: task, of: session) { told in
            switch told.disposition {
            case .useCredential where told.credential?.trust != nil: answer(.accept, nil)
            // A credential that is no trust says nothing about the server.
            case .useCredential, .performDefaultHandling:
                request.verdict.isValid ? answer(.accept, nil) : answer(.reject, refusal)
            case .cancelAuthenticationChallenge: answer(.reject, LoadFailure.error(.cancelled, url: url))
            case .rejectProtectionSpace: answer(.reject, refusal)
            }
        }
    }

    private static func refusal(_ trust: ServerTrust, _ request: VerificationRequest, _ url: URL) -> URLError {
        let isValid = request.verdict.isValid
        return LoadFailure.error(
            isValid ? .serverCertificateUntrusted : ServerTrust.failure(request.verdict.code), url: url,
            cause: isValid ? nil : TLSFailure(.verification(request.verdict), reasons: [request.verdict.description]),
            text: "The certificate of the server is not trusted: "
                + (isValid ? "the delegate rejected it." : "\(request.verdict)."),
            more: [NSURLErrorFailingURLPeerTrustErrorKey: trust])
    }

    /// - Parameter issuers: of whom the server accepts certificates, as DER names.
    func askIdentity(
        _ issuers: [[UInt8]], at url: URL, for task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (TLSIdentity?, URLError?) -> Void
    ) {
        let (host, port) = Self.place(url)
        let space = URLProtectionSpace(
            host: host, port: port, protocol: NSURLProtectionSpaceHTTPS, issuers: issuers.map { Data($0) })
        let stored = self.configuration.urlCredentialStorage?.defaultCredential(for: space)
        self.ask(Self.challenge(space, proposing: stored), about: task, of: session) { told in
            switch told.disposition {
            case .useCredential: answer(told.credential?.identity?.identity, nil)
            case .performDefaultHandling: answer(stored?.identity?.identity, nil)
            case .rejectProtectionSpace: answer(nil, nil)
            case .cancelAuthenticationChallenge: answer(nil, LoadFailure.error(.cancelled, url: url))
            }
        }
    }

    private static func place(_ url: URL) -> (host: String, port: Int) {
        (url.serverName ?? "", url.port ?? 443)
    }

    private static func challenge(
        _ space: URLProtectionSpace, proposing credential: URLCredential? = nil
    ) -> URLAuthenticationChallenge {
        URLAuthenticationChallenge(
            protectionSpace: space, proposedCredential: credential, previousFailureCount: 0, failureResponse: nil,
            error: nil, sender: ChallengeSender())
    }
}
