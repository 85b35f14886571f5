import Foundation

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
