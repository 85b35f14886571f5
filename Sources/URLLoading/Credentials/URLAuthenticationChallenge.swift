import Foundation
import Synchronization

/// A challenge of a server, a proxy or a TLS handshake. Immutable.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {  // Not final; immutable.
    private let space: URLProtectionSpace
    private let proposed: URLCredential?
    private let failures: Int
    private let response: URLResponse?
    private let cause: (any Error)?
    private let challengeSender: (any URLAuthenticationChallengeSender)?

    public init(
        protectionSpace space: URLProtectionSpace, proposedCredential credential: URLCredential?,
        previousFailureCount: Int, failureResponse response: URLResponse?, error: (any Error)?,
        sender: any URLAuthenticationChallengeSender
    ) {
        self.space = space
        self.proposed = credential
        self.failures = previousFailureCount
        self.response = response
        self.cause = error
        self.challengeSender = sender
        super.init()
    }

    /// A copy of the challenge with another sender.
    public init(
        authenticationChallenge challenge: URLAuthenticationChallenge, sender: any URLAuthenticationChallengeSender
    ) {
        self.space = challenge.protectionSpace
        self.proposed = challenge.proposedCredential
        self.failures = challenge.previousFailureCount
        self.response = challenge.failureResponse
        self.cause = challenge.error
        self.challengeSender = sender
        super.init()
    }

    open var protectionSpace: URLProtectionSpace { self.space }
    /// From the credential storage or the URL, or the last one tried; may lack a password.
    open var proposedCredential: URLCredential? { self.proposed }
    /// Number of credentials refused so far in this load.
    open var previousFailureCount: Int { self.failures }
    /// The 401 or 407 response; `nil` for a TLS handshake.
    open var failureResponse: URLResponse? { self.response }
    open var error: (any Error)? { self.cause }
    open var sender: (any URLAuthenticationChallengeSender)? { self.challengeSender }
}

/// Receives the answer to a challenge: once, from any thread.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    func cancel(_ challenge: URLAuthenticationChallenge)
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

/// Defaults: continue without a credential.
extension URLAuthenticationChallengeSender {
    public func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
        self.continueWithoutCredential(for: challenge)
    }

    public func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        self.continueWithoutCredential(for: challenge)
    }
}

/// The sender of a session's challenges. Calling it answers the challenge like the delegate's completion handler; the first
/// answer counts.
final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    private let receiver = Mutex<OneShotHandler<ChallengeAnswer>?>(nil)

    /// Sets the handler that receives the answer.
    func forward(to answer: OneShotHandler<ChallengeAnswer>) { self.receiver.withLock { $0 = answer } }

    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
        self.answer(.useCredential, credential)
    }

    func continueWithoutCredential(for challenge: URLAuthenticationChallenge) { self.answer(.useCredential, nil) }

    func cancel(_ challenge: URLAuthenticationChallenge) { self.answer(.cancelAuthenticationChallenge, nil) }

    func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
        self.answer(.performDefaultHandling, nil)
    }

    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        self.answer(.rejectProtectionSpace, nil)
    }

    private func answer(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
        let receiver = self.receiver.withLock { $0 }
        receiver?(ChallengeAnswer(disposition: disposition, credential: credential))
    }
}

/// A delegate's answer to a challenge.
struct ChallengeAnswer: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    /// Used if no delegate method handles the challenge.
    static let none = ChallengeAnswer(disposition: .performDefaultHandling, credential: nil)
}
