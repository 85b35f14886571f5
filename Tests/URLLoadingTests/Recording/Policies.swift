import Foundation
import URLLoading

/// What a recorder answers where it is asked. What is missing is answered as if nobody had been asked.
struct Policies: Sendable {
    typealias Redirected = @Sendable (HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void
    typealias Challenged =
        @Sendable (
            URLAuthenticationChallenge,
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) -> Void
    typealias Streaming = @Sendable (@escaping @Sendable (InputStream?) -> Void) -> Void
    typealias Responding = @Sendable (URLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void
    typealias Caching = @Sendable (CachedURLResponse) -> CachedURLResponse?

    var redirect: Redirected?
    var challenge: Challenged?
    var sessionChallenge: Challenged?
    var stream: Streaming?
    var response: Responding?
    var caching: Caching?
    /// Opened when it is asked whether to keep a response, which is never answered then.
    var cachingAsked: Gate?
    /// Called within `didReceive data`, with all that has come.
    var data: (@Sendable (URLSessionDataTask, Data) -> Void)?
    /// Called within `didFinishDownloadingTo`.
    var downloaded: (@Sendable (URL) -> Void)?
    /// Called within `didWriteData`, with the total.
    var written: (@Sendable (URLSessionDownloadTask, Int64) -> Void)?
    /// Called within `didCompleteWithError`.
    var completed: (@Sendable (URLSessionTask) -> Void)?

    /// Answers every challenge with this.
    static func credential(
        _ user: String, _ password: String, _ persistence: URLCredential.Persistence = .none
    ) -> Policies {
        var policies = Policies()
        policies.challenge = { _, answer in
            answer(.useCredential, URLCredential(user: user, password: password, persistence: persistence))
        }
        return policies
    }

    /// Takes every server.
    static let trusting: Policies = {
        var policies = Policies()
        policies.sessionChallenge = { challenge, answer in Policies.trust(challenge, answer) }
        return policies
    }()

    static func trust(
        _ challenge: URLAuthenticationChallenge,
        _ answer: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard let trust = challenge.protectionSpace.serverTrust else { return answer(.performDefaultHandling, nil) }
        answer(.useCredential, URLCredential(trust: trust))
    }
}
