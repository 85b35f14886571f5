import Foundation
import Synchronization

/// A challenge of a server, a proxy or a TLS handshake. Immutable.
open class URLAuthenticationChallenge: NSObject, NSSecureCoding, @unchecked Sendable {  // Not final; immutable.
    open class var supportsSecureCoding: Bool { true }

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

    /// An archived challenge has no server trust, no client identity and no accepted issuers, only domain, code and
    /// description of its error, and a sender without effect: what it asked for cannot be answered any more.
    ///
    /// Inherited by a subclass that overrides both designated initializers.
    public required convenience init?(coder: NSCoder) {
        guard coder.allowsKeyedCoding,
            let space = coder.decodeObject(of: URLProtectionSpace.self, forKey: "protectionSpace")
        else { return nil }
        self.init(
            protectionSpace: space,
            proposedCredential: coder.decodeObject(of: URLCredential.self, forKey: "proposedCredential"),
            previousFailureCount: max(0, Int(clamping: coder.decodeInt64(forKey: "previousFailureCount"))),
            failureResponse: coder.decodeObject(
                of: [URLResponse.self, HTTPURLResponse.self], forKey: "failureResponse") as? URLResponse,
            error: Self.error(coder), sender: ChallengeSender())
    }

    open func encode(with coder: NSCoder) {
        coder.encode(self.space, forKey: "protectionSpace")
        // A credential without a user cannot be archived. What is absent is written as such: the decoder refuses missing keys.
        coder.encode(self.proposed?.user == nil ? nil : self.proposed, forKey: "proposedCredential")
        coder.encode(Int64(self.failures), forKey: "previousFailureCount")
        coder.encode(self.response, forKey: "failureResponse")
        let error = self.cause.map { $0 as NSError }
        coder.encode(error.map { NSString(string: $0.domain) }, forKey: "errorDomain")
        coder.encode(Int64(error?.code ?? 0), forKey: "errorCode")
        coder.encode(error.map { NSString(string: $0.localizedDescription) }, forKey: "errorDescription")
    }

    private static func error(_ coder: NSCoder) -> (any Error)? {
        guard let domain = ResponseArchive.text("errorDomain", in: coder) else { return nil }
        let code = Int(clamping: coder.decodeInt64(forKey: "errorCode"))
        var details: [String: Any] = [:]
        details[NSLocalizedDescriptionKey] = ResponseArchive.text("errorDescription", in: coder)
        guard domain == NSURLErrorDomain, let known = URLError.Code(rawValue: code) else {
            return NSError(domain: domain, code: code, userInfo: details)
        }
        return URLError(known, userInfo: details)
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
    static let cancel = ChallengeAnswer(disposition: .cancelAuthenticationChallenge, credential: nil)
}
