import Foundation
import HTTPTransport
import SessionTasks
import TLSEngine
import WireText

extension HTTPLoad: ChallengedRequest {
    var challengedTask: (task: URLSessionTask, session: URLSession)? { (self.loader.task, self.loader.session) }

    /// - Parameter tls: with whom the request is authenticated.
    private func currentConnection(_ tls: KeyPath<ConnectionMetadata, TLSMetadata?>) -> HandshakeConnection {
        let (exchange, isLeased) = (self.attempt?.exchange, self.lease?.hasConnection ?? false)
        let connection = exchange?.connection
        return HandshakeConnection(
            isKept: true, isOpen: isLeased && exchange?.keepsConnection == true,
            isReused: connection?.isReused ?? false,
            certificate: connection?[keyPath: tls]?.peerChain.first)
    }

    /// - Returns: whether the challenge is being answered; otherwise the 401 is the final response.
    func authenticate(_ response: HTTPURLResponse, _ head: ResponseHead) -> Bool {
        self.handshakeConnection = self.currentConnection(\.tls)
        let hadHandshake = self.credentials.handshake != nil
        defer { if hadHandshake, self.credentials.handshake == nil { self.discardLease() } }
        return self.authenticate(response, head.fields.values("WWW-Authenticate")) { $0.answered($1, response) }
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
        authenticator.handshakeConnection = self.currentConnection(\.proxyTLS)
        let hadHandshake = authenticator.credentials.handshake != nil
        defer { if hadHandshake, authenticator.credentials.handshake == nil { self.discardLease() } }
        return authenticator.answer(head, response, answered)
    }

    // MARK: Connections that are authenticated

    /// Chooses a connection that is authenticated for the request, or to be.
    func lease(_ exchange: inout ExchangeRequest) {
        exchange.identity = self.credentials.identity
        if exchange.proxy?.method == .forwarding {
            exchange.proxyIdentity = self.proxyAuthenticator?.credentials.identity
        }
        guard exchange.identity != nil || exchange.proxyIdentity != nil else { return self.releaseLease() }
        let lease = self.lease ?? ConnectionLease()
        self.lease = lease
        exchange.lease = lease
        let handshakes = [self.credentials.handshake, self.proxyAuthenticator?.credentials.handshake]
        exchange.isBoundToLease = handshakes.contains { $0?.isBound == true }
    }

    func releaseLease() {
        self.lease?.release()
        self.lease = nil
    }

    /// The server refuses to authenticate the connection.
    func discardLease() {
        self.lease?.discard()
        self.lease = nil
    }

    /// Begins a handshake whose connection is lost on another one.
    /// - Returns: `false` if that was done often enough, and if the server may have processed the request.
    func repeatHandshake(after failure: ExchangeFailure, of head: RequestHead) -> Bool {
        switch failure {
        case .leaseLost: break
        // The server may have closed the connection just as the request was written.
        case .connectionLost(let loss) where loss.wasReused && !loss.responseBegan && head.isIdempotent: break
        default: return false
        }
        let isServers = self.credentials.abandonHandshake()
        let isProxys = self.proxyAuthenticator?.credentials.abandonHandshake() ?? false
        guard isServers || isProxys else { return false }
        self.releaseLease()
        self.attemptEnded()
        self.send()
        return true
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
