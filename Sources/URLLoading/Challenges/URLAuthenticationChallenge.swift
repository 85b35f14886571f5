import Foundation

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
