import Foundation
import URLLoading

/// The decisions of a recorder. Missing ones have the default of a delegate without the method.
struct Policies: Sendable {
    typealias RedirectHandler =
        @Sendable (HTTPURLResponse, URLRequest, @escaping @Sendable (URLRequest?) -> Void) -> Void
    typealias ChallengeHandler =
        @Sendable (
            URLAuthenticationChallenge,
            @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) -> Void
    typealias BodyStreamHandler = @Sendable (@escaping @Sendable (InputStream?) -> Void) -> Void
    typealias ResponseHandler =
        @Sendable (URLResponse, @escaping @Sendable (URLSession.ResponseDisposition) -> Void) -> Void
    typealias CachingHandler = @Sendable (CachedURLResponse) -> CachedURLResponse?

    var redirect: RedirectHandler?
    var challenge: ChallengeHandler?
    var sessionChallenge: ChallengeHandler?
    var stream: BodyStreamHandler?
    /// The rest of a body from an offset on.
    var streamRest: (@Sendable (Int64) -> InputStream?)?
    /// Called within `didReceiveInformationalResponse`.
    var informational: (@Sendable (HTTPURLResponse) -> Void)?
    var response: ResponseHandler?
    var caching: CachingHandler?
    /// Opened when the delegate is asked about caching; the delegate then never answers.
    var cachingAsked: Gate?
    /// Called within `didReceive data`, with all bytes received so far.
    var data: (@Sendable (URLSessionDataTask, Data) -> Void)?
    /// Called within `didFinishDownloadingTo`.
    var downloaded: (@Sendable (URL) -> Void)?
    /// Called within `didWriteData`, with the total.
    var written: (@Sendable (URLSessionDownloadTask, Int64) -> Void)?
    /// Called within `didSendBodyData`, with the total.
    var sent: (@Sendable (URLSessionTask, Int64) -> Void)?
    /// Called within `didCompleteWithError`.
    var completed: (@Sendable (URLSessionTask) -> Void)?

    /// The answer to every challenge.
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
