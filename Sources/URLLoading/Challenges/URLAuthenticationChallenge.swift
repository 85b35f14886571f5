import Foundation
import Synchronization

/// A server, a proxy or a TLS handshake asks for something. It does not change once made.
open class URLAuthenticationChallenge: NSObject, @unchecked Sendable {
    private let space: URLProtectionSpace
    private let proposal: URLCredential?
    private let failures: Int
    private let response: URLResponse?
    private let cause: (any Error)?
    private let asker: (any URLAuthenticationChallengeSender)?

    public init(
        protectionSpace space: URLProtectionSpace, proposedCredential credential: URLCredential?,
        previousFailureCount: Int, failureResponse response: URLResponse?, error: (any Error)?,
        sender: any URLAuthenticationChallengeSender
    ) {
        self.space = space
        self.proposal = credential
        self.failures = previousFailureCount
        self.response = response
        self.cause = error
        self.asker = sender
        super.init()
    }

    /// The same challenge, asked by another.
    public init(
        authenticationChallenge challenge: URLAuthenticationChallenge, sender: any URLAuthenticationChallengeSender
    ) {
        self.space = challenge.protectionSpace
        self.proposal = challenge.proposedCredential
        self.failures = challenge.previousFailureCount
        self.response = challenge.failureResponse
        self.cause = challenge.error
        self.asker = sender
        super.init()
    }

    open var protectionSpace: URLProtectionSpace { self.space }
    /// From the storage, from the URL, or what was tried last; may lack a password.
    open var proposedCredential: URLCredential? { self.proposal }
    /// How often credentials were refused in this load; 0 at first.
    open var previousFailureCount: Int { self.failures }
    /// The 401 or the 407; `nil` for a TLS handshake.
    open var failureResponse: URLResponse? { self.response }
    open var error: (any Error)? { self.cause }
    open var sender: (any URLAuthenticationChallengeSender)? { self.asker }
}

/// Who asks for a credential, and takes the answer: once, from any thread.
public protocol URLAuthenticationChallengeSender: NSObjectProtocol, Sendable {
    func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge)
    func continueWithoutCredential(for challenge: URLAuthenticationChallenge)
    func cancel(_ challenge: URLAuthenticationChallenge)
    func performDefaultHandling(for challenge: URLAuthenticationChallenge)
    func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge)
}

extension URLAuthenticationChallengeSender {
    /// Goes on without a credential, where the sender knows no better.
    public func performDefaultHandling(for challenge: URLAuthenticationChallenge) {
        self.continueWithoutCredential(for: challenge)
    }

    /// Goes on without a credential, where the sender knows no better.
    public func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
        self.continueWithoutCredential(for: challenge)
    }
}

/// The sender of a challenge that a session asks: whoever tells it what to do has answered, as by the completion handler;
/// the first answer counts.
final class ChallengeSender: NSObject, URLAuthenticationChallengeSender, Sendable {
    private let receiver = Mutex<OneShotHandler<ChallengeAnswer>?>(nil)

    /// - Parameter answer: takes what the sender is told.
    func answers(to answer: OneShotHandler<ChallengeAnswer>) { self.receiver.withLock { $0 = answer } }

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

/// What a delegate says to a challenge.
struct ChallengeAnswer: Sendable {
    let disposition: URLSession.AuthChallengeDisposition
    let credential: URLCredential?

    /// Where nobody is asked.
    static let none = ChallengeAnswer(disposition: .performDefaultHandling, credential: nil)
}
